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
  // In a run: the answer holds `item` this often (0: not counted).
  std::string item;
  std::size_t items = 0;
};

// What a run of many calls took. Any answer but a complete 2xx ends the run with an error.
struct RunResult {
  Duration elapsed{};
  Samples latencies;
};

// Connections to one API server, all on one loop. What blocks runs the loop until it has its
// answer.
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

  // On the connections in turn. An answer other than 2xx is an error with its body.
  void Send(const Call& call, std::function<void(Result<net::Response>)> done);
  void SendOn(std::size_t connection, const Call& call,
              std::function<void(Result<net::Response>)> done);

  // Blocks.
  Result<net::Response> Do(const Call& call);
  // `count` calls, `depth` under way on every connection. Bodies are read to their end and checked
  // against their length, but not kept. Blocks.
  Result<RunResult> Run(std::size_t count, std::size_t depth,
                        const std::function<Call(std::size_t)>& make);
  // Runs the loop until `is_done`, which is asked whenever Wake is called. Blocks.
  Result<void> RunUntil(const std::string& what, const std::function<bool()>& is_done,
                        Duration at_most = std::chrono::minutes(5));
  // Blocks; fails when something under way fails.
  Result<void> RunFor(Duration duration);
  void Wake() { loop_.Stop(); }
  // Ends the blocking call under way with this error.
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
