#include "rpc/transport/status.h"

#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar::rpc {
namespace {

struct Row {
  int grpc_code;
  std::string_view name;
  ErrorCode error_code;
  bool answers;  // a server answers error_code with this row
};

constexpr Row kTable[] = {
    {1, "Canceled", ErrorCode::kCancelled, true},
    {2, "Unknown", ErrorCode::kInternal, false},
    {3, "InvalidArgument", ErrorCode::kInvalidArgument, true},
    {4, "DeadlineExceeded", ErrorCode::kDeadlineExceeded, true},
    {5, "NotFound", ErrorCode::kNotFound, true},
    {6, "AlreadyExists", ErrorCode::kAlreadyExists, true},
    {7, "PermissionDenied", ErrorCode::kForbidden, true},
    {8, "ResourceExhausted", ErrorCode::kResourceExhausted, true},
    {9, "FailedPrecondition", ErrorCode::kFailedPrecondition, true},
    {10, "Aborted", ErrorCode::kConflict, true},
    {11, "OutOfRange", ErrorCode::kExpired, true},
    {12, "Unimplemented", ErrorCode::kUnimplemented, true},
    {13, "Internal", ErrorCode::kInternal, true},
    {14, "Unavailable", ErrorCode::kUnavailable, true},
    {15, "DataLoss", ErrorCode::kDataLoss, true},
    {16, "Unauthenticated", ErrorCode::kUnauthenticated, true},
};

const Row* FindRow(int grpc_code) {
  for (const Row& row : kTable) {
    if (row.grpc_code == grpc_code) return &row;
  }
  return nullptr;
}

}  // namespace

std::string GrpcCodeName(int grpc_code) {
  if (grpc_code == 0) return "OK";
  if (const Row* row = FindRow(grpc_code)) return std::string(row->name);
  return StrCat("Code(", grpc_code, ")");
}

Error ErrorFromGrpcStatus(int grpc_code, std::string_view message) {
  CHECK(grpc_code != 0);
  // gRPC libraries word an expired deadline differently; users grep for what Kubernetes prints.
  if (grpc_code == 4 && message == "Deadline Exceeded") message = "context deadline exceeded";
  const Row* row = FindRow(grpc_code);
  return Error{row != nullptr ? row->error_code : ErrorCode::kInternal,
               StrCat("rpc error: code = ", GrpcCodeName(grpc_code), " desc = ", message)};
}

int GrpcCodeFromError(ErrorCode code) {
  for (const Row& row : kTable) {
    if (row.error_code == code && row.answers) return row.grpc_code;
  }
  CHECK(false);  // every ErrorCode has a row, see the test
  return 2;
}

}  // namespace drakkar::rpc
