#pragma once

#include <memory>

#include "net/http/session.h"

namespace drakkar::net::http2 {

// Many exchanges at a time, up to what the server's settings allow (CanSubmit). Received data is
// acknowledged as it is delivered: the events must consume it.
std::unique_ptr<ClientSession> NewClientSession(const SessionLimits& limits,
                                                ClientSession::Events& events);

}  // namespace drakkar::net::http2
