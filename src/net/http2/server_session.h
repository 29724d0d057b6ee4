#pragma once

#include <memory>

#include "net/http/session.h"

namespace drakkar::net::http2 {

// HTTP/2 based on nghttp2, bounded by SessionLimits. A malformed request resets its stream; a
// protocol violation ends the connection with GOAWAY.
std::unique_ptr<ServerSession> NewServerSession(const SessionLimits& limits,
                                                ServerSession::Events& events);

}  // namespace drakkar::net::http2
