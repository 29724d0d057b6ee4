#include "base/result/error.h"

#include <cerrno>
#include <cstring>

#include "base/result/shortage.h"

namespace drakkar {

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "InvalidArgument";
    case ErrorCode::kNotFound:
      return "NotFound";
    case ErrorCode::kAlreadyExists:
      return "AlreadyExists";
    case ErrorCode::kConflict:
      return "Conflict";
    case ErrorCode::kExpired:
      return "Expired";
    case ErrorCode::kForbidden:
      return "Forbidden";
    case ErrorCode::kUnauthenticated:
      return "Unauthenticated";
    case ErrorCode::kResourceExhausted:
      return "ResourceExhausted";
    case ErrorCode::kFailedPrecondition:
      return "FailedPrecondition";
    case ErrorCode::kUnavailable:
      return "Unavailable";
    case ErrorCode::kDeadlineExceeded:
      return "DeadlineExceeded";
    case ErrorCode::kCancelled:
      return "Cancelled";
    case ErrorCode::kUnimplemented:
      return "Unimplemented";
    case ErrorCode::kDataLoss:
      return "DataLoss";
    case ErrorCode::kInternal:
      return "Internal";
  }
  return "Unknown";
}

Error Error::Prefixed(std::string_view what) const& {
  return Error(*this).Prefixed(what);
}

Error Error::Prefixed(std::string_view what) && {
  std::string text(what);
  text += ": ";
  text += message;
  return Error{code, std::move(text)};
}

Error InvalidArgument(std::string message) {
  return Error{ErrorCode::kInvalidArgument, std::move(message)};
}
Error NotFound(std::string message) {
  return Error{ErrorCode::kNotFound, std::move(message)};
}
Error FailedPrecondition(std::string message) {
  return Error{ErrorCode::kFailedPrecondition, std::move(message)};
}
Error Unavailable(std::string message) {
  return Error{ErrorCode::kUnavailable, std::move(message)};
}
Error Internal(std::string message) {
  return Error{ErrorCode::kInternal, std::move(message)};
}

Error ErrnoError(int error_number, std::string_view what) {
  ReportShortage(error_number);
  ErrorCode code = ErrorCode::kInternal;
  switch (error_number) {
    case ENOENT:
      code = ErrorCode::kNotFound;
      break;
    case EEXIST:
      code = ErrorCode::kAlreadyExists;
      break;
    case EACCES:
    case EPERM:
      code = ErrorCode::kForbidden;
      break;
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
      code = ErrorCode::kInvalidArgument;
      break;
    case ENOSPC:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      code = ErrorCode::kResourceExhausted;
      break;
    case ETIMEDOUT:
      code = ErrorCode::kDeadlineExceeded;
      break;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EADDRINUSE:
      code = ErrorCode::kUnavailable;
      break;
    case ECANCELED:
      code = ErrorCode::kCancelled;
      break;
    default:
      break;
  }
  std::string text(what);
  text += ": ";
  char buffer[128];
  text += strerror_r(error_number, buffer, sizeof(buffer));
  return Error{code, std::move(text)};
}

}  // namespace drakkar
