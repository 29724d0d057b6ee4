#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result/result.h"
#include "net/http/headers.h"

namespace drakkar::net::websocket {

// Whether a request asks for a WebSocket upgrade.
bool IsUpgrade(const Headers& request);

struct Accepted {
  Headers headers;       // of the 101 response
  std::string protocol;  // the first of the client's protocols that we support
};
// RFC 6455 section 4.2. An error is the client's fault.
Result<Accepted> Accept(const Headers& request, std::span<const std::string_view> protocols);
// The same whatever the protocol: the first one that the client offers, or none.
Result<Accepted> AcceptAny(const Headers& request);

// The client side: the headers of its request (`key` is 16 random bytes in base64), and a check of
// the response that returns the chosen protocol.
Headers RequestHeaders(std::string_view key, std::string_view protocols);
Result<std::string> CheckAnswer(const Headers& answer, std::string_view key);

}  // namespace drakkar::net::websocket
