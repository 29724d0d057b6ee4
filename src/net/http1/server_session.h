#pragma once

#include <memory>

#include "net/http/session.h"

namespace drakkar::net::http1 {

// HTTP/1.1 and 1.0. Handles one request at a time: pipelined bytes wait, up to a limit, until the
// previous response has been sent. An invalid request gets an error (400, 413, 431, 501, 505) and
// ends the connection.
std::unique_ptr<ServerSession> NewServerSession(const SessionLimits& limits,
                                                ServerSession::Events& events);

}  // namespace drakkar::net::http1
