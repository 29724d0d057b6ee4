#include "sdk/driver/host/driver_endpoint.h"

#include "base/text/text.h"
#include "net/socket/address_kind.h"

namespace drakkar::driver {
namespace {

const net::Headers& PlainText() {
  static const net::Headers headers = {{"Content-Type", "text/plain; charset=utf-8"}};
  return headers;
}

Result<void> Run(const std::function<Result<void>()>& check) {
  return check ? check() : Ok();
}

void Answer(net::ResponseWriter& writer, const Result<void>& checked) {
  if (checked.ok()) return writer.Send(200, PlainText(), std::string("ok"));
  writer.Send(503, PlainText(), checked.error().message + "\n");
}

// "10.0.0.7" of "10.0.0.7:40312".
std::string HostOf(std::string_view peer) {
  peer = peer.substr(0, peer.rfind(':'));
  if (peer.starts_with('[') && peer.ends_with(']')) peer = peer.substr(1, peer.size() - 2);
  return std::string(peer);
}

}  // namespace

bool MayReadMetrics(std::string_view peer) {
  return peer == "@" || net::IsThisMachine(HostOf(peer));
}

Result<net::Address> ParseListenAddress(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  std::optional<std::int64_t> port;
  if (colon != std::string::npos) port = ParseInt64(std::string_view(text).substr(colon + 1));
  if (!port || *port < 0 || *port > 65'535) {
    return InvalidArgument(
        StrCat("address ", Quote(text), " must include a port, for example 127.0.0.1:8080"));
  }
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) host = "0.0.0.0";
  return net::Address{.host = std::move(host), .port = static_cast<std::uint16_t>(*port)};
}

Result<void> DriverEndpoint::Start() {
  net::HttpServerOptions http;
  ASSIGN_OR_RETURN(http.address, ParseListenAddress(options_.address));
  server_ = std::make_unique<net::HttpServer>(options_.loop, std::move(http), *this);
  return server_->Start();
}

void DriverEndpoint::Handle(net::ServerRequest request,
                            std::shared_ptr<net::ResponseWriter> writer) {
  if (request.method != net::Method::kGet) {
    return writer->Send(405, PlainText(), std::string("only GET is supported\n"));
  }
  if (request.path == "/healthz" || request.path == "/livez") {
    return Answer(*writer, Run(options_.check_health));
  }
  if (request.path == "/readyz") {
    const Result<void> healthy = Run(options_.check_health);
    return Answer(*writer, healthy.ok() ? Run(options_.check_ready) : healthy);
  }
  if (request.path == "/metrics") {
    if (!MayReadMetrics(request.connection->remote_address)) {
      return writer->Send(403, PlainText(),
                          std::string("metrics are served to this machine only; scrape them "
                                      "through a proxy on the node that authenticates\n"));
    }
    if (options_.before_metrics) options_.before_metrics();
    return writer->Send(200, {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
                        options_.metrics.Text());
  }
  writer->Send(404, PlainText(), std::string("404 page not found\n"));
}

}  // namespace drakkar::driver
