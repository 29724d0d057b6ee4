#pragma once

#include <memory>

#include "net/http/session.h"

namespace drakkar::net::http1 {

// One exchange at a time. If a request with `Connection: Upgrade` gets 101, the connection becomes
// a raw stream (OnResponse 101, then OnRawData).
std::unique_ptr<ClientSession> NewClientSession(const SessionLimits& limits,
                                                ClientSession::Events& events);

}  // namespace drakkar::net::http1
