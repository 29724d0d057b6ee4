#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result/result.h"
#include "net/http/headers.h"

namespace drakkar::net::websocket {

// Whether a request asks to become a WebSocket.
bool IsUpgrade(const Headers& request);

struct Accepted {
  Headers headers;       // of the 101 answer
  std::string protocol;  // the first of the client's that we speak
};
// Section 4.2 of RFC 6455. An error is the client's.
Result<Accepted> Accept(const Headers& request, std::span<const std::string_view> protocols);

// The client's side: the headers of its request (`key` is 16 random bytes in base64), and whether
// the answer fits them. Gives the protocol chosen.
Headers RequestHeaders(std::string_view key, std::string_view protocols);
Result<std::string> CheckAnswer(const Headers& answer, std::string_view key);

}  // namespace drakkar::net::websocket
