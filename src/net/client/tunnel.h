#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/client/http_client.h"
#include "net/socket/socket.h"

namespace drakkar::net::client {

// What a proxy answers to CONNECT.
class TunnelAnswer {
 public:
  static constexpr std::size_t kMaxHeadBytes = 16 * 1024;

  // Takes bytes as they arrive. True: the tunnel is open, and what follows is from the server;
  // false: more is needed. Not to be called again after true or an error.
  Result<bool> Add(std::string_view bytes);

 private:
  std::string head_;
};

// Asks a proxy for a connection to a server (CONNECT, RFC 9110 section 9.3.6). Bound to the
// socket's loop. Destroying it closes the socket, and nothing follows.
class Tunnel final : private Socket::Handler {
 public:
  // Runs once, not inside Start. Gets the socket, on which the server listens from then on. May
  // destroy the tunnel.
  using Done = std::function<void(Result<std::unique_ptr<Socket>>)>;

  // `server` is "host:port".
  Tunnel(std::unique_ptr<Socket> socket, std::string server, const HttpProxy& proxy, Done done);
  void Start();

 private:
  void OnSocketData(std::string_view bytes) override;
  void OnSocketClosed(const Error* error) override;
  void OnSocketDrained() override {}
  void Fail(std::string_view why);

  std::unique_ptr<Socket> socket_;
  const std::string server_;
  const std::string proxy_;
  std::string request_;
  TunnelAnswer answer_;
  Done done_;
};

}  // namespace drakkar::net::client
