#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/client/http_client.h"
#include "net/socket/socket.h"

namespace drakkar::net::client {

// Asks a proxy for a connection to a server (CONNECT, RFC 9110 section 9.3.6). Bound to the
// socket's loop. Destroying it closes the socket, and nothing follows.
class Tunnel final : private Socket::Handler {
 public:
  // What a proxy may answer before the tunnel.
  static constexpr std::size_t kMaxHeadBytes = 16 * 1024;
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
  std::string head_;
  Done done_;
};

}  // namespace drakkar::net::client
