#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/env/file_system.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "base/os/file_watcher.h"
#include "client/access_reviewer.h"
#include "net/server/http_server.h"
#include "node/pods/log_stream.h"

namespace drakkar {
class Metrics;
}

namespace drakkar::node {

class NodeAgent;
class PortForward;
class RemoteCommand;
class Runtime;
class SpdyCommand;

// The node's HTTPS port (10250): /containerLogs/{namespace}/{pod}/{container}, /exec and /attach
// with the same path over a WebSocket or SPDY, /portForward/{namespace}/{pod} over SPDY, /pods,
// /devices (health and holders), /drivers (registrations and unreadable CDI specs), /metrics,
// /stats/summary, /metrics/resource, /metrics/cadvisor and /healthz. node_access.h lists the
// permission each one needs. Pass it to a net::HttpServer whose TLS context requests client
// certificates. Loop-bound; `agent` must be started. Bounds: kMaxLogStreams and kMaxRemoteCommands
// at a time, kMaxPending bytes buffered for a slow reader.
class NodeServer final : public net::RequestHandler {
 public:
  struct Options {
    EventLoop& loop;
    FileSystem& files;
    const NodeAgent& agent;
    Runtime& runtime;
    Metrics* metrics = nullptr;
    // Wakes log followers when the log is written; null: they poll.
    FileWatcher* log_watcher = nullptr;
    std::string node_name;  // the Node that permissions are checked on
    // Whether the sender has one of the permissions `any_of`, usually client::AccessReviewer.
    // `done` may be called later, and need not be called once this object is destroyed. Empty:
    // every request is denied.
    std::function<void(const net::ServerRequest& request,
                       std::vector<client::AccessReviewer::Access> any_of,
                       client::AccessReviewer::Done done)>
        authorize;
  };
  static constexpr std::size_t kMaxLogStreams = 1'000;
  static constexpr std::size_t kMaxRemoteCommands = 200;  // and port-forwards
  static constexpr std::size_t kMaxPending = 64 << 10;
  static constexpr Duration kFollowEvery = std::chrono::milliseconds(200);
  // Used with a watcher only to notice that the container has exited.
  static constexpr Duration kFollowWatchedEvery = std::chrono::seconds(1);

  explicit NodeServer(Options options);
  ~NodeServer() override;

  void Handle(net::ServerRequest request, std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  struct Follower;
  void Serve(const net::ServerRequest& request, const std::shared_ptr<net::ResponseWriter>& writer);
  void ServeUsage(const net::ServerRequest& request,
                  const std::shared_ptr<net::ResponseWriter>& writer);
  void SendLogs(const net::ServerRequest& request, const std::string& namespace_name,
                const std::string& pod, const std::string& container,
                const std::shared_ptr<net::ResponseWriter>& writer);
  void Pump(std::uint64_t id);
  void WatchLog(std::uint64_t id, const std::string& path);
  void ServeCommand(const net::ServerRequest& request, std::string_view verb,
                    const std::string& namespace_name, const std::string& pod,
                    const std::string& container, net::ResponseWriter& writer);
  void ServePortForward(const net::ServerRequest& request, const std::string& namespace_name,
                        const std::string& pod, net::ResponseWriter& writer);
  std::size_t open_sessions() const;

  const Options options_;
  std::map<std::uint64_t, std::unique_ptr<Follower>> followers_;
  std::map<std::uint64_t, std::unique_ptr<RemoteCommand>> commands_;
  std::map<std::uint64_t, std::unique_ptr<SpdyCommand>> spdy_commands_;
  std::map<std::uint64_t, std::unique_ptr<PortForward>> port_forwards_;
  std::uint64_t next_id_ = 1;
  Lifetime lifetime_;
};

// Parses kubectl's query (tailLines, sinceSeconds, sinceTime, limitBytes, timestamps, previous,
// follow, stream). Unknown parameters are ignored, malformed ones refused.
Result<LogOptions> ParseLogOptions(const net::Query& query, WallTime now);

}  // namespace drakkar::node
