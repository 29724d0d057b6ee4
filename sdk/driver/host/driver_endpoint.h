#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/exec/uv_loop.h"
#include "base/result/result.h"
#include "net/server/http_server.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::driver {

// A driver's HTTP port: /healthz (the process responds and has had no fatal error), /readyz (the
// driver is registered and its devices are published) and /metrics. Plain HTTP without
// authentication: everyone who reaches the port may probe, but only processes of this machine read
// metrics. Loop-bound.
class DriverEndpoint final : public net::RequestHandler {
 public:
  struct Options {
    UvLoop& loop;
    std::string address;  // "127.0.0.1:8080", "[::1]:8080", ":8080"; port 0 chooses a free one
    Metrics& metrics;
    // Asked at each request; an error is the answer. May be empty.
    std::function<Result<void>()> check_health;
    std::function<Result<void>()> check_ready;
    // Called before metrics are written, to update gauges. May be empty.
    std::function<void()> before_metrics;
  };
  explicit DriverEndpoint(Options options) : options_(std::move(options)) {}

  Result<void> Start();
  std::uint16_t port() const { return server_->port(); }
  void Handle(net::ServerRequest request, std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  const Options options_;
  std::unique_ptr<net::HttpServer> server_;
};

// Whether the client at this address ("10.0.0.7:40312", "@" for a unix socket) may read metrics.
bool MayReadMetrics(std::string_view peer);

// Parses "127.0.0.1:8080". An empty host means all addresses.
Result<net::Address> ParseListenAddress(const std::string& text);

}  // namespace drakkar::driver
