#include "net/client/tunnel.h"

#include "base/text/text.h"

namespace drakkar::net::client {

Result<bool> TunnelAnswer::Add(std::string_view bytes) {
  head_.append(bytes.substr(0, kMaxHeadBytes + 1 - head_.size()));
  if (head_.size() > kMaxHeadBytes) return Unavailable("its answer is too long");
  const std::size_t end = head_.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  // "HTTP/1.1 200 Connection established"
  const std::string_view line = std::string_view(head_).substr(0, head_.find("\r\n"));
  const std::size_t space = line.find(' ');
  const auto status = line.starts_with("HTTP/1.") && space != std::string_view::npos
                          ? ParseInt64(line.substr(space + 1, 3))
                          : std::nullopt;
  if (!status) return Unavailable("it is not an HTTP proxy");
  if (*status < 200 || *status > 299) {
    return Unavailable(
        StrCat("it answered ", *status,
               *status == 407 ? ", which means that it wants another user and password" : ""));
  }
  // The server speaks only after the client.
  if (end + 4 != head_.size()) return Unavailable("it sent more than an answer");
  return true;
}

Tunnel::Tunnel(std::unique_ptr<Socket> socket, std::string server, const HttpProxy& proxy,
               Done done)
    : socket_(std::move(socket)),
      server_(std::move(server)),
      proxy_(Address{proxy.host, proxy.port, ""}.ToText()),
      request_(StrCat("CONNECT ", server_, " HTTP/1.1\r\nHost: ", server_, "\r\n")),
      done_(std::move(done)) {
  if (!proxy.authorization.empty()) {
    request_ += StrCat("Proxy-Authorization: ", proxy.authorization, "\r\n");
  }
  request_ += "\r\n";
}

void Tunnel::Start() {
  socket_->Start(*this);
  socket_->Write(request_);
}

void Tunnel::OnSocketData(std::string_view bytes) {
  const Result<bool> open = answer_.Add(bytes);
  if (!open.ok()) return Fail(open.error().message);
  if (!*open) return;
  // The callback may destroy this.
  const Done done = std::move(done_);
  done(std::move(socket_));
}

void Tunnel::OnSocketClosed(const Error* error) {
  Fail(error != nullptr ? error->message : "it closed the connection");
}

void Tunnel::Fail(std::string_view why) {
  const Done done = std::move(done_);
  done(Unavailable(StrCat("connect to ", server_, " through proxy ", proxy_, ": ", why)));
}

}  // namespace drakkar::net::client
