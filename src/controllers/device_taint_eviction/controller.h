#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"
#include "controllers/device_taint_eviction/rule_status.h"
#include "controllers/device_taint_eviction/tainted_devices.h"
#include "controllers/eviction/pod_evictor.h"

namespace drakkar {
class Counter;
class Histogram;
class Metrics;
}  // namespace drakkar

namespace drakkar::controllers {

// Evicts pods whose devices have a NoExecute taint that their claim does not tolerate, or no longer
// tolerates, and reports the progress in the status of DeviceTaintRules.
//
// While no such taint exists, changes of pods and claims cost nothing. A change of taints checks
// every claim once. Loop-bound; bounded by the pods that are to be evicted and by the rules.
class DeviceTaintEvictionController {
 public:
  // Minimum interval between two writes of one rule's status.
  static constexpr Duration kStatusInterval = std::chrono::seconds(10);

  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::EventRecorder& events;
    Metrics& metrics;
    client::Informer& pods;
    client::Informer& claims;
    client::Informer& slices;
    client::Informer& rules;
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit DeviceTaintEvictionController(Options options);

 private:
  using Done = client::WorkQueue::Done;
  void AddHandlers();
  bool Synced() const;
  // Checks all claims in the next turn of the loop, once for all changes of this turn.
  void ScanLater();
  void Scan();
  void AddPodsOf(const api::Object& claim);
  void SyncPod(const std::string& key, Done done);
  std::optional<DeviceEviction> EvictionOf(const api::Object& pod) const;
  void Evict(const api::ObjectPtr& pod, const DeviceEviction& eviction, Done done);
  void Plan(const std::string& key, std::optional<DeviceEviction> eviction);
  void SyncRule(const std::string& name, Done done);
  RuleProgress ProgressOf(const api::Object& rule) const;

  const Options options_;
  client::ScopedClient client_;
  PodEvictor evictor_;
  client::WorkQueue pod_queue_;
  client::WorkQueue rule_queue_;
  Counter& deletions_;
  Histogram& delays_;
  TaintedDevices taints_;
  std::map<std::string, DeviceEviction> planned_;        // by pod, until the pod is terminating
  std::map<std::string, std::size_t> evicted_;           // by rule
  std::map<std::string, MonotonicTime> status_written_;  // by rule
  bool scan_posted_ = false;
  Lifetime lifetime_;
};

}  // namespace drakkar::controllers
