#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "node/admission/pod_verdict.h"
#include "node/eviction/thresholds.h"

namespace drakkar::node {

// Keeps the node from running out of memory, disk and process ids, as a kubelet does. Every kEvery
// it ends pods that exceed their limits of ephemeral storage, reports pressure, frees what the node
// itself can free, and then ends one pod at a time, waiting until it is gone. Soft thresholds must
// be met for their grace period. A condition stays for the transition period after it was last
// observed. Loop-bound.
class EvictionManager {
 public:
  struct Options {
    EventLoop& loop;
    std::vector<Threshold> thresholds;
    Duration transition_period = std::chrono::minutes(5);
    std::int64_t max_pod_grace_seconds = 0;                  // for soft thresholds
    std::function<void(UsageCollector::Done)> read_machine;  // cheap
    std::function<void(UsageCollector::Done)> read_all;      // with pods
    std::function<std::vector<api::ObjectPtr>()> active_pods;
    std::function<void(const std::string& uid, PodVerdict verdict, Duration grace)> evict;
    std::function<bool(const std::string& uid)> is_gone;
    // Removes images that no container uses; null: there are none to remove.
    std::function<void(std::function<void()> done)> free_images;
    std::function<void(std::string_view resource)> on_reclaim;  // for an event
    std::function<void()> on_conditions;                        // they have changed
  };
  static constexpr Duration kEvery = std::chrono::seconds(10);
  static constexpr Duration kLookForEnd = std::chrono::seconds(1);
  static constexpr Duration kWaitForEnd = std::chrono::seconds(30);
  static constexpr Duration kHardGrace = std::chrono::seconds(1);

  explicit EvictionManager(Options options) : options_(std::move(options)) {}
  // Without thresholds there is no pressure, but the limits of pods are still enforced.
  void Start();

  // "MemoryPressure", "DiskPressure", "PIDPressure".
  bool HasCondition(std::string_view condition) const {
    return conditions_.contains(std::string(condition));
  }
  // Why a new pod must not start under the current pressure.
  std::optional<PodVerdict> Admit(api::Value pod) const;

 private:
  void Look();
  void EnforceLimits();
  void Next(Duration delay);
  // Updates what is known and returns the threshold to act on.
  std::optional<Threshold> Assess(const Observations& observations);
  void Act(const Threshold& threshold, bool freed_images);
  void Evict(const Threshold& threshold, const NodeUsage& usage);
  void WaitForEnd(const std::string& uid, MonotonicTime deadline);

  const Options options_;
  std::set<std::size_t> met_;  // indexes of thresholds whose grace period has passed
  std::map<std::size_t, MonotonicTime> first_met_;
  std::map<std::string, MonotonicTime> last_observed_;  // by condition
  std::set<std::string> conditions_;
  TimerHandle timer_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
