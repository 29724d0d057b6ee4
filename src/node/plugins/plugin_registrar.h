#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/exec/backoff.h"
#include "base/exec/event_loop.h"
#include "base/os/file_watcher.h"
#include "node/plugins/plugin_store.h"
#include "node/plugins/socket_watch.h"

namespace drakkar {
class Metrics;
}

namespace drakkar::node {

// Registers the plugins whose sockets appear in the registry directory, as kubelets do: GetInfo,
// validation, registration, NotifyRegistrationStatus. A socket that disappears or is recreated is
// deregistered first. One operation at a time per socket; failures are retried after 500 ms,
// doubling up to 2 min 2 s. Loop-bound; bounded by SocketWatch::kMaxSockets.
class PluginRegistrar {
 public:
  struct Options {
    EventLoop& loop;
    FileSystem& files;
    FileWatcher& watcher;
    rpc::Transport& transport;
    Metrics* metrics = nullptr;
    std::string directory;
    // Called once: when every socket that existed at startup has answered GetInfo (`true`), or at
    // least one could not be queried. May be empty.
    std::function<void(bool all_answered)> on_settled;
  };
  // A socket file appears on bind, shortly before its owner listens. Connection failures this early
  // are retried without logging.
  static constexpr int kEarlyAttempts = 5;
  static constexpr Backoff::Options kEarlyRetry{.initial = std::chrono::milliseconds(10),
                                                .max = std::chrono::milliseconds(160)};
  static constexpr Backoff::Options kRetry{.initial = std::chrono::milliseconds(500),
                                           .max = std::chrono::seconds(122)};
  static constexpr Duration kGetInfoTimeout = std::chrono::seconds(1);
  static constexpr Duration kNotifyTimeout = std::chrono::seconds(5);

  PluginRegistrar(Options options, PluginStore& store);
  ~PluginRegistrar();

  Result<void> Start();

 private:
  struct Socket {
    std::uint64_t incarnation = 0;  // of the socket file; answers for older ones are dropped
    bool wanted = false;            // the file exists
    bool busy = false;
    bool registered = false;
    std::string driver;
    std::string endpoint;
    Backoff early{kEarlyRetry};  // for the first kEarlyAttempts since the file appeared
    Backoff backoff{kRetry};
    TimerHandle retry;
  };

  void OnCreated(const std::string& path);
  void OnRemoved(const std::string& path);
  void Advance(const std::string& path);
  void OnInfo(const std::string& path, std::uint64_t incarnation, Result<rpc::PluginInfo> info);
  // For on_settled.
  void OnScanned();
  void Answered(const std::string& path, bool answered);
  void TakeInfo(const std::string& path, const rpc::PluginInfo& info);
  void RetryAfter(const std::string& path, Duration delay);
  void Refuse(const std::string& path, const std::string& reason);
  void OnNotified(const std::string& path, std::uint64_t incarnation, Result<void> result);
  void Deregister(Socket& socket);
  void Fail(const std::string& path, const std::string& reason);
  void ReportState(const std::string& path, const char* state, bool present);

  const Options options_;
  PluginStore& store_;
  std::unique_ptr<rpc::RegistrationClient> client_;
  SocketWatch watch_;
  std::map<std::string, Socket> sockets_;
  std::uint64_t next_incarnation_ = 1;
  bool scanned_ = false;
  bool settled_ = false;
  bool all_answered_ = true;
  std::set<std::string> unanswered_;  // sockets that existed at startup
};

}  // namespace drakkar::node
