#pragma once

#include <optional>
#include <string_view>

#include "apiserver/request/failure.h"
#include "net/http/headers.h"

namespace drakkar::apiserver {

// A bearer token as one of the protocols that a WebSocket offers, which is how browsers send one:
// this prefix and the token in base64url.
inline constexpr std::string_view kTokenProtocol = "base64url.bearer.authorization.k8s.io.";

// Turns such a protocol into an Authorization header, unless the request has one, and removes it
// from the protocols. A failure if it is malformed or the only protocol, as in Kubernetes. Does
// nothing for other requests.
std::optional<Failure> TakeWebSocketToken(net::Headers& headers);

}  // namespace drakkar::apiserver
