#pragma once

#include <string>
#include <string_view>

namespace drakkar {

// Why an operation failed, coarse enough for callers to branch on. HTTP statuses and gRPC codes are
// mapped in exactly one table each (net and rpc).
enum class ErrorCode {
  kInvalidArgument,  // the input is wrong; retrying does not help
  kNotFound,
  kAlreadyExists,
  kConflict,  // optimistic concurrency lost; read again and retry
  kExpired,   // a revision or token is too old; list again
  kForbidden,
  kUnauthenticated,
  kResourceExhausted,   // a limit was reached; retry later
  kFailedPrecondition,  // the required state does not hold
  kUnavailable,         // the peer cannot be reached; retry later
  kDeadlineExceeded,
  kCancelled,
  kUnimplemented,
  kDataLoss,  // data that was read is corrupt
  kInternal,
};

std::string_view ErrorCodeName(ErrorCode code);

// A failure of the environment or of the input. `message` states the reason without the operation;
// the caller adds what it was doing with `Prefixed`.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  // "<what>: <message>" with the same code.
  Error Prefixed(std::string_view what) const&;
  Error Prefixed(std::string_view what) &&;

  bool operator==(const Error&) const = default;
};

Error InvalidArgument(std::string message);
Error NotFound(std::string message);
Error FailedPrecondition(std::string message);
Error Unavailable(std::string message);
Error Internal(std::string message);

// An error for errno: "<what>: <strerror>" with the matching code.
Error ErrnoError(int error_number, std::string_view what);

}  // namespace drakkar
