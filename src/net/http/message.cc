#include "net/http/message.h"

namespace drakkar::net {
namespace {

constexpr std::pair<Method, std::string_view> kMethods[] = {
    {Method::kGet, "GET"},         {Method::kHead, "HEAD"},       {Method::kPost, "POST"},
    {Method::kPut, "PUT"},         {Method::kPatch, "PATCH"},     {Method::kDelete, "DELETE"},
    {Method::kOptions, "OPTIONS"}, {Method::kConnect, "CONNECT"}, {Method::kTrace, "TRACE"},
};

}  // namespace

std::string_view MethodName(Method method) {
  return kMethods[static_cast<std::size_t>(method)].second;
}

std::optional<Method> FindMethod(std::string_view name) {
  for (const auto& [method, text] : kMethods) {
    if (text == name) return method;
  }
  return std::nullopt;
}

bool IsIdempotent(Method method) {
  return method != Method::kPost && method != Method::kPatch && method != Method::kConnect;
}

}  // namespace drakkar::net
