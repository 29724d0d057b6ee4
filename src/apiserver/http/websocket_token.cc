#include "apiserver/http/websocket_token.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/hash/base64.h"
#include "base/text/text.h"
#include "net/websocket/handshake.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kProtocols = "Sec-WebSocket-Protocol";

// Base64url without padding; nullopt if it is malformed or not printable.
std::optional<std::string> Decode(std::string_view text) {
  std::string standard(text);
  std::ranges::replace(standard, '-', '+');
  std::ranges::replace(standard, '_', '/');
  if (text.find_first_of("+/=") != std::string_view::npos) return std::nullopt;
  standard.append((4 - standard.size() % 4) % 4, '=');
  Result<std::string> decoded = Base64Decode(standard);
  if (!decoded.ok() || decoded->empty() || !net::IsHeaderValue(*decoded)) return std::nullopt;
  return *std::move(decoded);
}

}  // namespace

std::optional<Failure> TakeWebSocketToken(net::Headers& headers) {
  if (headers.Find(kProtocols) == nullptr || !net::websocket::IsUpgrade(headers)) {
    return std::nullopt;
  }
  std::vector<std::string> kept;
  std::optional<std::string> token;
  for (const auto& [name, value] : headers) {
    if (!net::EqualsIgnoreCase(name, kProtocols)) continue;
    for (std::string_view each : Split(value, ',')) {
      each = Trim(each);
      if (!each.starts_with(kTokenProtocol)) {
        kept.emplace_back(each);
        continue;
      }
      std::optional<std::string> decoded = Decode(each.substr(kTokenProtocol.size()));
      if (!decoded || token) return api::StatusUnauthorized("Unauthorized");
      token = std::move(decoded);
    }
  }
  if (!token) return std::nullopt;
  // At least one protocol must be left for the response.
  if (kept.empty()) return api::StatusUnauthorized("Unauthorized");
  headers.Set(std::string(kProtocols), Join(kept, ", "));
  if (headers.Find("authorization") == nullptr) {
    headers.Add("Authorization", StrCat("Bearer ", *token));
  }
  return std::nullopt;
}

}  // namespace drakkar::apiserver
