#pragma once

#include <uv.h>

#include <string_view>

#include "base/result/error.h"
#include "base/result/shortage.h"

namespace drakkar::net {

// "<what>: <reason>" for a libuv error number. Reports shortages.
inline Error UvError(int code, std::string_view what) {
  ReportShortage(-code);
  Error error = Unavailable(code == UV_EOF ? "the connection was closed" : uv_strerror(code));
  if (code == UV_EACCES || code == UV_EPERM) error.code = ErrorCode::kForbidden;
  if (code == UV_EMFILE || code == UV_ENFILE) error.code = ErrorCode::kResourceExhausted;
  if (code == UV_ETIMEDOUT) error.code = ErrorCode::kDeadlineExceeded;
  if (code == UV_EINVAL) error.code = ErrorCode::kInvalidArgument;
  return what.empty() ? error : std::move(error).Prefixed(what);
}

}  // namespace drakkar::net
