#pragma once

#include <memory>

#include "net/http/session.h"

namespace drakkar::net::http1 {

// One exchange at a time. A request with `Connection: Upgrade` that is answered with 101 turns the
// connection into a raw stream (OnResponse 101, then OnRawData).
std::unique_ptr<ClientSession> NewClientSession(const SessionLimits& limits,
                                                ClientSession::Events& events);

}  // namespace drakkar::net::http1
