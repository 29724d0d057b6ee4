#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/watch/store_layout.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "storage/store.h"

namespace drakkar::apiserver {

struct ServerAddress {
  std::string ip;
  std::uint16_t port = 0;
  auto operator<=>(const ServerAddress&) const = default;
};

// Tracks which API servers of a shared store are alive. Each writes a record below "masterleases/"
// that expires unless it is renewed, as kube-apiserver does (--endpoint-reconciler-type=lease), so
// that both kinds of server see each other.
//
// Reports the servers after each renewal and whenever a record appears or disappears. A server that
// was stopped disappears immediately, any other within kTimeToLive. This server is always included.
//
// Loop-bound. No callback after destruction.
class LivingServers {
 public:
  // Those of kube-apiserver.
  static constexpr Duration kTimeToLive = std::chrono::seconds(15);
  static constexpr Duration kInterval = std::chrono::seconds(10);
  // After a failure.
  static constexpr Duration kRetryInterval = std::chrono::seconds(2);
  // For the removal of the own record.
  static constexpr Duration kStopTimeout = std::chrono::seconds(1);

  struct Options {
    EventLoop& loop;
    storage::Store& store;
    StoreLayout layout;
    ServerAddress self;
    // Sorted, each once.
    std::function<void(const std::vector<ServerAddress>&)> on_servers;
  };
  explicit LivingServers(Options options);
  LivingServers(const LivingServers&) = delete;
  LivingServers& operator=(const LivingServers&) = delete;

  void Start();
  // Removes this server's record. `done` runs afterwards, or after kStopTimeout.
  void Stop(std::function<void()> done);

 private:
  void Renew();
  void Read();
  void OnRead(const storage::RangeResult& records);
  void Follow();
  void FinishStop();

  const Options options_;
  const std::string prefix_;
  const std::string key_;
  TimerHandle renewal_;
  std::unique_ptr<storage::Watch> watch_;
  bool reading_ = false;
  bool read_again_ = false;
  bool stopping_ = false;
  TimerHandle stop_timeout_;
  std::function<void()> on_stopped_;
  Lifetime lifetime_;
};

// Endpoints and EndpointSlices "kubernetes" of the namespace default for these servers. One slice
// and one subset per port; a slice has the addresses of one family, that of the first server.
std::vector<api::TreePtr> EndpointsOf(const std::vector<ServerAddress>& servers);
// The servers that Endpoints name, sorted.
std::vector<ServerAddress> ServersOf(const api::Value& endpoints);
// The server whose address the Service "kubernetes" gets because the one that it names was alive
// `before` and is not `now`. Nothing if that is not so, or if no server has an address of its
// family.
std::optional<ServerAddress> SuccessorOf(const api::Value& service,
                                         const std::vector<ServerAddress>& before,
                                         const std::vector<ServerAddress>& now);

}  // namespace drakkar::apiserver
