#pragma once

#include <string>
#include <string_view>

namespace drakkar {

// Why an operation failed, coarse enough for callers to branch on. The HTTP status and gRPC code
// of each live in one table each (net and rpc), nowhere else.
enum class ErrorCode {
  kInvalidArgument,  // the input is wrong; trying again will not help
  kNotFound,
  kAlreadyExists,
  kConflict,  // optimistic concurrency lost; read again and retry
  kExpired,   // a revision or token is too old; list again
  kForbidden,
  kUnauthenticated,
  kResourceExhausted,   // a bound was reached; retry later
  kFailedPrecondition,  // the world is not in the state this needs
  kUnavailable,         // the peer cannot be reached; retry later
  kDeadlineExceeded,
  kCancelled,
  kUnimplemented,
  kDataLoss,  // what was read back is corrupt
  kInternal,
};

std::string_view ErrorCodeName(ErrorCode code);

// A failure of the world or of the input. `message` states the reason without naming the
// operation: the caller adds what it was doing with `Prefixed`.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  // "<what>: <message>", same code.
  Error Prefixed(std::string_view what) const&;
  Error Prefixed(std::string_view what) &&;

  bool operator==(const Error&) const = default;
};

Error InvalidArgument(std::string message);
Error NotFound(std::string message);
Error FailedPrecondition(std::string message);
Error Unavailable(std::string message);
Error Internal(std::string message);

// The failure errno describes: "<what>: <strerror>", with the code that fits.
Error ErrnoError(int error_number, std::string_view what);

}  // namespace drakkar
