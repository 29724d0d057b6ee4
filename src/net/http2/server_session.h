#pragma once

#include <memory>

#include "net/http/session.h"

namespace drakkar::net::http2 {

// HTTP/2 over nghttp2. Bounds: SessionLimits. A malformed request resets its stream, a violation of
// the protocol ends the connection with GOAWAY.
std::unique_ptr<ServerSession> NewServerSession(const SessionLimits& limits,
                                                ServerSession::Events& events);

}  // namespace drakkar::net::http2
