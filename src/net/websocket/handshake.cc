#include "net/websocket/handshake.h"

#include <algorithm>

#include "base/hash/base64.h"
#include "base/text/text.h"
#include "net/tls/crypto.h"

namespace drakkar::net::websocket {
namespace {

constexpr std::size_t kKeyBytes = 16;

std::string AcceptKey(std::string_view key) {
  return Base64Encode(Sha1(StrCat(key, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")));
}

// The client's key if the request is a valid upgrade.
Result<std::string> KeyOf(const Headers& request) {
  if (!IsUpgrade(request)) return InvalidArgument("the request is not a WebSocket upgrade");
  if (request.Get("sec-websocket-version") != "13") {
    return InvalidArgument("only version 13 of the WebSocket protocol is supported");
  }
  const std::string_view key = request.Get("sec-websocket-key");
  const Result<std::string> decoded = Base64Decode(key);
  if (!decoded.ok() || decoded->size() != kKeyBytes) {
    return InvalidArgument("Sec-WebSocket-Key is not 16 bytes in base64");
  }
  return std::string(key);
}

}  // namespace

bool IsUpgrade(const Headers& request) {
  return request.HasToken("connection", "upgrade") && request.HasToken("upgrade", "websocket");
}

Result<Accepted> Accept(const Headers& request, std::span<const std::string_view> protocols) {
  ASSIGN_OR_RETURN(const std::string key, KeyOf(request));
  Accepted accepted;
  for (const auto& [name, value] : request) {
    if (!EqualsIgnoreCase(name, "sec-websocket-protocol") || !accepted.protocol.empty()) continue;
    for (std::string_view offered : Split(value, ',')) {
      offered = Trim(offered);
      if (std::ranges::find(protocols, offered) == protocols.end()) continue;
      accepted.protocol = offered;
      break;
    }
  }
  if (accepted.protocol.empty()) {
    return InvalidArgument(StrCat("none of the WebSocket protocols ",
                                  Quote(request.Get("sec-websocket-protocol")),
                                  " is supported; supported are ",
                                  Join(std::vector(protocols.begin(), protocols.end()), ", ")));
  }
  accepted.headers = {{"Upgrade", "websocket"},
                      {"Sec-WebSocket-Accept", AcceptKey(key)},
                      {"Sec-WebSocket-Protocol", accepted.protocol}};
  return accepted;
}

Result<Accepted> AcceptAny(const Headers& request) {
  ASSIGN_OR_RETURN(const std::string key, KeyOf(request));
  Accepted accepted;
  accepted.headers = {{"Upgrade", "websocket"}, {"Sec-WebSocket-Accept", AcceptKey(key)}};
  const std::string_view offered = request.Get("sec-websocket-protocol");
  accepted.protocol = Trim(offered.substr(0, offered.find(',')));
  if (!accepted.protocol.empty()) {
    accepted.headers.Add("Sec-WebSocket-Protocol", accepted.protocol);
  }
  return accepted;
}

Headers RequestHeaders(std::string_view key, std::string_view protocols) {
  return {{"Connection", "Upgrade"},
          {"Upgrade", "websocket"},
          {"Sec-WebSocket-Version", "13"},
          {"Sec-WebSocket-Key", std::string(key)},
          {"Sec-WebSocket-Protocol", std::string(protocols)}};
}

Result<std::string> CheckAnswer(const Headers& answer, std::string_view key) {
  if (!EqualsIgnoreCase(answer.Get("upgrade"), "websocket") ||
      answer.Get("sec-websocket-accept") != AcceptKey(key)) {
    return Unavailable("the server did not complete the WebSocket handshake");
  }
  return std::string(answer.Get("sec-websocket-protocol"));
}

}  // namespace drakkar::net::websocket
