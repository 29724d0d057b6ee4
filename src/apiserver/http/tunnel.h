#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "apiserver/request/failure.h"
#include "base/exec/event_loop.h"
#include "net/client/http_client.h"
#include "net/server/http_server.h"

namespace drakkar::apiserver {

// In each direction. Somebody who reads nothing may hold many tunnels.
inline constexpr std::size_t kMaxUnsentInTunnel = 64u << 10;

// A request that asks to switch protocols, to be passed on to another server.
struct TunnelOptions {
  EventLoop& loop;
  net::HttpClient& http;
  net::ClientRequest request;  // with the headers Connection and Upgrade
  std::shared_ptr<net::ResponseWriter> writer;
  // How the client learns that the server cannot be reached.
  std::function<Failure(std::string_view why)> unreachable;
  std::shared_ptr<const void> place;  // kept until the connection ends
};

// Passes the request on, and then bytes in both directions, no faster than they are read, until
// either side closes. If the server refuses, the client gets its answer.
void OpenTunnel(TunnelOptions options);

}  // namespace drakkar::apiserver
