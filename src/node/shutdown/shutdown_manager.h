#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "base/exec/event_loop.h"
#include "node/admission/pod_verdict.h"

namespace drakkar::node {

// How long pods of at least this priority may take to end when the machine shuts down.
struct ShutdownPeriod {
  std::int64_t priority = 0;
  std::int64_t seconds = 0;

  bool operator==(const ShutdownPeriod&) const = default;
};

// Sorted by priority, without repetitions.
// `total` and `critical` are shutdownGracePeriod and shutdownGracePeriodCriticalPods.
std::vector<ShutdownPeriod> PeriodsOf(Duration total, Duration critical);
Duration Total(const std::vector<ShutdownPeriod>& periods);

// The index of the period for a pod: that with the highest priority that is not above the pod's, or
// else the first.
std::size_t PeriodOf(const std::vector<ShutdownPeriod>& periods, std::int64_t priority);

// Ends the pods of a machine that is shutting down, as a kubelet does: pods of low priority first,
// and those of the next period once they have ended or their time is up. No pod starts meanwhile.
// Does not know what causes the shutdown. Loop-bound.
class ShutdownManager {
 public:
  struct Options {
    EventLoop& loop;
    std::vector<ShutdownPeriod> periods;  // none: the node does nothing about a shutdown
    std::function<std::vector<api::ObjectPtr>()> active_pods;
    std::function<void(const std::string& uid, PodVerdict verdict, Duration grace)> evict;
    std::function<bool(const std::string& uid)> is_gone;
    std::function<void(const std::string& message)>
        on_changed;                 // for an event and the node's status
    std::function<void()> on_done;  // the machine may go down
  };
  static constexpr Duration kLookForEnd = std::chrono::milliseconds(200);

  explicit ShutdownManager(Options options) : options_(std::move(options)) {}

  void Begin();
  // The shutdown was cancelled. Pods that were ended are not restarted.
  void Cancel();
  bool is_shutting_down() const { return is_shutting_down_; }
  // Why a new pod must not start.
  std::optional<PodVerdict> Admit() const;
  // For the node's Ready condition.
  std::optional<std::string> WhyNotReady() const;

 private:
  void EndGroup(std::size_t index);
  void WaitForGroup(std::size_t index, MonotonicTime deadline);

  const Options options_;
  bool is_shutting_down_ = false;
  std::vector<std::string> waiting_;  // UIDs of the group that is ending
  TimerHandle timer_;
};

}  // namespace drakkar::node
