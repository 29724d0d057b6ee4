#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/headers.h"

namespace drakkar::net {

enum class Method { kGet, kHead, kPost, kPut, kPatch, kDelete, kOptions, kConnect, kTrace };

std::string_view MethodName(Method method);
std::optional<Method> FindMethod(std::string_view name);  // exact, upper case
// Whether repeating the request has the same effect as sending it once (RFC 9110 section 9.2.2).
bool IsIdempotent(Method method);

// Bytes that several messages can share: encoded once, sent to many.
using Segment = std::shared_ptr<const std::string>;
using Body = std::vector<Segment>;

inline Segment MakeSegment(std::string bytes) {
  return std::make_shared<const std::string>(std::move(bytes));
}

struct Request {
  Method method = Method::kGet;
  std::string target = "/";  // path and query as sent, still percent-encoded
  Headers headers;           // HTTP/2's :authority appears as Host
  std::string body;
};

struct Response {
  int status = 0;
  Headers headers;
  std::string body;
};

}  // namespace drakkar::net
