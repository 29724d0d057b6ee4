#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "api/tree/draft.h"
#include "base/env/file_system.h"
#include "base/exec/backoff.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "node/checkpoint/blocking_work.h"
#include "node/dra/claim_cache.h"
#include "node/health/health_cache.h"
#include "node/plugins/plugin_store.h"

namespace drakkar {
class FeatureGates;
class Metrics;
}  // namespace drakkar

namespace drakkar::node {

// Follows the health stream of each driver and reports which pods are affected.
//
// There is one stream per driver, to the instance that receives its calls: the newest connected
// one. When a newer instance takes over, the old stream is cancelled (KEP-4680 3.3) so that it
// cannot overrule its successor; if the newer instance disappears first, the old one is used again.
// If the plugin lacks a health service, the next one is tried; after the last, none is requested
// until the plugin registers or reconnects. A stream that ends is reopened after 1 s, doubling to
// 30 s, starting again with the newest service.
//
// Changes, clears and expiries reach `on_changed` in the next turn of the loop, all devices of a
// burst together. The cache file is written at most once a second, one write at a time. With
// ResourceHealthStatusMessage off, messages are hidden. With ResourceHealthStatus off, it does
// nothing and leaves the file alone. Loop-bound.
class HealthMonitor {
 public:
  struct Change {
    DeviceKey device;
    DeviceHealthView now;
    std::set<std::string> pod_uids;
  };
  struct Options {
    EventLoop& loop;
    FileSystem& files;
    BlockingWork& work;
    const FeatureGates& gates;
    const ClaimCache& claims;
    Metrics* metrics = nullptr;
    std::string directory;
    std::function<void(const std::vector<Change>&)> on_changed;
  };
  static constexpr Backoff::Options kRetry{.initial = std::chrono::seconds(1),
                                           .max = std::chrono::seconds(30)};
  static constexpr Duration kWriteEvery = std::chrono::seconds(1);
  static constexpr std::size_t kEncodePerTurn = 256;

  explicit HealthMonitor(Options options);
  ~HealthMonitor();

  // Reads the cache file. A missing file is an empty cache; an unreadable one is logged and treated
  // as empty.
  void Load();
  void Add(const PluginInstancePtr& plugin);
  void Remove(const PluginInstancePtr& plugin);
  // A different process may serve the socket now, so health is requested again even if it was
  // unsupported.
  void Connected(const PluginInstancePtr& plugin);
  // An instance of the driver connected or disconnected, and at least one is connected. A stream
  // that is backing off is opened now.
  void DriverUsable(const std::string& driver);

  // status.containerStatuses[].allocatedResourcesStatus of one container; absent if it has none.
  api::Draft ResourceStatus(api::Value pod, api::Value container) const;
  const HealthCache& cache() const { return cache_; }
  // Every device that is reported or held by a pod: {driver, pool, device, health, message, since,
  // claims: [{namespace, name, podUIDs}]}, sorted. For the node's port.
  api::Draft ListDevices() const;
  // Updates the gauges that count these devices by driver and health. Call before reading them.
  void CountDevices() const;

 private:
  struct Stream {
    PluginInstancePtr plugin;
    std::size_t service = 0;  // index of the service in use; past the end: none is left to try
    Backoff backoff{kRetry};
    std::unique_ptr<rpc::HealthStream> stream;
    bool opening = false;  // opens in the next turn of the loop
    bool open = false;
    bool failure_logged = false;  // log only the first failure since the last report
    bool malformed_logged = false;
    bool excess_logged = false;
    TimerHandle retry;
  };
  // Ensures that the driver has exactly one stream, to the right instance.
  void Select(const std::string& driver);
  void Open(std::uint64_t id);
  void LogEnd(Stream& stream, const Result<void>& result);
  void OnReport(std::uint64_t id, const rpc::HealthReport& report);
  void OnMalformed(std::uint64_t id, const Error& error);
  void OnEnd(std::uint64_t id, Result<void> result);
  void Publish(const std::vector<DeviceKey>& changed);
  void TellChanges();
  HealthTime Now() const { return HealthNow(options_.loop.clock()); }
  DeviceHealthView View(const DeviceKey& key) const;
  std::map<DeviceKey, DeviceHealthView> Views() const;
  void ArmExpiry(std::optional<MonotonicTime> at);
  void WriteSoon();
  void WritePiece();

  const Options options_;
  HealthCache cache_;
  std::map<std::uint64_t, Stream> streams_;
  std::uint64_t next_id_ = 1;
  TimerHandle expiry_;
  MonotonicTime expiry_at_{};
  TimerHandle write_;
  std::optional<HealthCache::Encoding> encoding_;  // while a write is being encoded
  bool writing_ = false;                           // while a write is in flight
  bool publishing_ = false;
  std::set<DeviceKey> pending_;
  mutable std::set<std::string> counted_;  // drivers that have gauges
  Lifetime lifetime_;
};

}  // namespace drakkar::node
