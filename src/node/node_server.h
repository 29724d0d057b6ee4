#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/env/file_system.h"
#include "base/exec/event_loop.h"
#include "net/server/http_server.h"
#include "node/pods/log_stream.h"

namespace drakkar {
class Metrics;
}

namespace drakkar::node {

class NodeAgent;
class Runtime;

// The node's HTTPS port (10250): /containerLogs/{namespace}/{pod}/{container}, /pods, /devices
// (their health and who holds them), /metrics and /healthz. Hand it to a net::HttpServer with a TLS context that asks for client certificates.
// Loop-bound; `agent` must be started. Bounded: kMaxLogStreams at a time, kMaxPending bytes waiting
// for a slow reader.
class NodeServer final : public net::RequestHandler {
 public:
  struct Options {
    EventLoop& loop;
    FileSystem& files;
    const NodeAgent& agent;
    const Runtime& runtime;
    Metrics* metrics = nullptr;
    // Who may ask for anything but /healthz: usually whoever showed a certificate of our CA. Empty:
    // nobody.
    std::function<bool(const net::ConnectionInfo&)> is_allowed;
  };
  static constexpr std::size_t kMaxLogStreams = 1'000;
  static constexpr std::size_t kMaxPending = 1 << 20;
  static constexpr Duration kFollowEvery = std::chrono::milliseconds(200);

  explicit NodeServer(Options options);
  ~NodeServer() override;

  void Handle(net::ServerRequest request, std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  struct Follower;
  void SendLogs(const net::ServerRequest& request, const std::string& namespace_name,
                const std::string& pod, const std::string& container,
                const std::shared_ptr<net::ResponseWriter>& writer);
  void Pump(std::uint64_t id);

  const Options options_;
  std::map<std::uint64_t, std::unique_ptr<Follower>> followers_;
  std::uint64_t next_id_ = 1;
};

// What kubectl's query says (tailLines, sinceSeconds, sinceTime, limitBytes, timestamps, previous,
// follow, stream). Unknown parameters are ignored, malformed ones refused.
Result<LogOptions> ParseLogOptions(const net::Query& query, WallTime now);

}  // namespace drakkar::node
