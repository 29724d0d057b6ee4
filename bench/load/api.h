#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/exec/uv_loop.h"
#include "bench/load/figures.h"
#include "client/kubeconfig.h"
#include "net/client/http_client.h"

namespace drakkar::load {

struct Call {
  net::Method method = net::Method::kGet;
  std::string path;
  std::string body;
  std::string content_type = "application/json";
  // In a run: how often the response must contain `item` (0: not counted).
  std::string item;
  std::size_t items = 0;
};

// The cost of a run of many calls. Any response but a complete 2xx fails the run.
struct RunResult {
  Duration elapsed{};
  Samples latencies;
};

// Connections to one API server, all on one loop. Blocking functions run the loop until they are
// done.
class Api {
 public:
  struct Options {
    std::size_t connections = 32;
    bool http2 = true;
  };
  Api(UvLoop& loop, const client::ClusterAccess& access, Options options);

  UvLoop& loop() { return loop_; }
  MonotonicTime now() const { return loop_.clock().Monotonic(); }
  std::size_t connections() const { return clients_.size(); }
  void set_connections(std::size_t count);
  net::HttpClient& client(std::size_t index) { return *clients_[index % clients_.size()]; }
  net::ClientRequest Request(const Call& call) const;

  // Uses the connections round-robin. A response other than 2xx is an error with its body.
  void Send(const Call& call, std::function<void(Result<net::Response>)> done);
  void SendOn(std::size_t connection, const Call& call,
              std::function<void(Result<net::Response>)> done);

  // Blocks.
  Result<net::Response> Do(const Call& call);
  // Makes `count` calls with `depth` in flight on every connection. Reads bodies completely and
  // checks their length, but does not keep them. Blocks.
  Result<RunResult> Run(std::size_t count, std::size_t depth,
                        const std::function<Call(std::size_t)>& make);
  // Runs the loop until `is_done`, which is checked whenever Wake is called. Blocks.
  Result<void> RunUntil(const std::string& what, const std::function<bool()>& is_done,
                        Duration at_most = std::chrono::minutes(5));
  // Blocks; fails if an operation in flight fails.
  Result<void> RunFor(Duration duration);
  void Wake() { loop_.Stop(); }
  // Ends the current blocking call with this error.
  void Fail(const Error& error);

 private:
  struct Running;
  class Caller;

  UvLoop& loop_;
  client::ClusterAccess access_;
  Options options_;
  std::vector<std::unique_ptr<net::HttpClient>> clients_;
  std::size_t next_ = 0;
  std::optional<Error> failure_;
};

}  // namespace drakkar::load
