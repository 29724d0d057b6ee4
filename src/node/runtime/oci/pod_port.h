#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/exec/uv_loop.h"
#include "base/exec/worker_pool.h"
#include "node/runtime/port_connection.h"

namespace drakkar::node {

// How long a server in a pod may take to accept a connection.
constexpr Duration kPortConnectTimeout = std::chrono::seconds(10);

// Connects to a port on the loopback interface of a network namespace (a path; empty: the host's),
// which also reaches servers that listen only there. IPv4 first, then IPv6. A worker makes the
// connection, because entering a namespace affects a whole thread.
std::unique_ptr<PortConnection> ConnectPodPort(UvLoop& loop, WorkerPool& workers,
                                               std::string network_namespace, std::uint16_t port,
                                               PortConnection::Events& events);

}  // namespace drakkar::node
