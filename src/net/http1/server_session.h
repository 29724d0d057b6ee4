#pragma once

#include <memory>

#include "net/http/session.h"

namespace drakkar::net::http1 {

// HTTP/1.1 and 1.0. One request at a time: what a pipelining client sends ahead waits, bounded,
// until the answer before it is handed out. A request that breaks the rules is answered (400, 413,
// 431, 501, 505) and ends the connection.
std::unique_ptr<ServerSession> NewServerSession(const SessionLimits& limits,
                                                ServerSession::Events& events);

}  // namespace drakkar::net::http1
