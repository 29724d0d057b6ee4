#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "base/exec/event_loop.h"
#include "scheduler/framework/cluster_event.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/queue/active_pods.h"
#include "scheduler/queue/backoff_pods.h"
#include "scheduler/queue/queued_pod.h"
#include "scheduler/queue/unschedulable_pods.h"

namespace drakkar::scheduler {

struct SchedulerMetrics;

// The pods without a node. Each is in one place: active (to be tried), in a pause after an attempt
// (backoff), refused and waiting for an event (unschedulable, gated ones included), or in flight
// (taken out by Pop until Done or one of the Returns).
//
// Guarantees: an event wakes a refused pod if and only if a plugin that refused it says that the
// event may help; an event that comes while a pod is in flight counts as if it came afterwards; a
// refused pod is tried again after kLongestWait whatever happens. While nothing is active, pods in
// a pause because of a refusal (not of an error) are taken early. A pause after an error ends early
// with the events that it was said to, but for one pod not twice within the shortest pause.
//
// Loop-bound. As many entries as there are unbound pods; kMaxInFlightEvents events are kept for
// pods in flight, and one that misses some is tried again without waiting for an event.
class SchedulingQueue {
 public:
  static constexpr Duration kLongestWait = std::chrono::minutes(5);
  static constexpr Duration kFlushPeriod = std::chrono::seconds(30);
  static constexpr std::size_t kMaxInFlightEvents = 4'096;

  struct Options {
    EventLoop& loop;
    std::span<const std::unique_ptr<Plugin>> plugins;
    // The plugins of a pod's profile, if there are several: the same with the same ids, but perhaps
    // configured otherwise. Empty: `plugins` for all.
    std::function<std::span<const std::unique_ptr<Plugin>>(const PodInfo& pod)> plugins_of;
    BackoffPods::Pauses pauses;
    SchedulerMetrics* metrics = nullptr;  // may be null
    // Of a pod's profile, if there are several. Empty: `metrics` for all.
    std::function<SchedulerMetrics*(const PodInfo& pod)> metrics_of;
    std::function<void()> on_active;  // a pod became ready to be popped
  };
  explicit SchedulingQueue(Options options);

  void Add(PodInfoPtr pod);
  // A new version of a pod; adds it if it is not there.
  void Update(PodInfoPtr pod);
  void Remove(const std::string& uid);

  // The next pod to try, now in flight; null if none is ready. Valid until it is removed or leaves
  // flight.
  QueuedPod* Pop();
  // True if Pop would give a pod.
  bool HasReady() const { return !active_.empty() || !refused_backoff_.empty(); }

  // The pod is being bound, which may take long (KEP-5007 waits): events need not be kept for it
  // any more. Its flight ends with Done or ReturnFailed.
  void OnBindingBegins(const std::string& uid);

  // The ends of a flight. A pod that was removed meanwhile is forgotten.
  void Done(const std::string& uid);  // it has a node
  void ReturnRefused(const std::string& uid, PluginSet rejected_by);
  void ReturnFailed(const std::string& uid, Retry retry = {});  // an error: pause, then again

  void OnEvent(const ClusterEvent& event);

  // In the queue or in flight; null if neither.
  const QueuedPod* Find(const std::string& uid) const;
  std::size_t active_count() const { return active_.size(); }
  std::size_t backoff_count() const { return refused_backoff_.size() + failed_backoff_.size(); }
  std::size_t unschedulable_count() const { return unschedulable_.size() - gated_; }
  std::size_t gated_count() const { return gated_; }
  std::size_t kept_event_count() const { return events_.size(); }
  std::size_t in_flight_count() const { return in_flight_.size(); }

 private:
  enum class Place : std::uint8_t { kNowhere, kActive, kBackoff, kUnschedulable, kInFlight };
  struct Entry : QueuedPod {
    Place place = Place::kNowhere;
    bool removed = false;  // while in flight
    bool in_error_backoff = false;
    EventMask pause_ended_by = 0;  // of a pause after an error
    // When an event last ended its pause.
    std::optional<MonotonicTime> last_cut;
    bool binding = false;            // in flight, and no events are kept for it
    std::uint64_t flight_start = 0;  // number of the first event that came during its flight
  };

  // Out of its place; leaves it nowhere.
  void Take(Entry& entry);
  void Enter(Entry& entry, std::string_view event);  // PreEnqueue, then active or gated
  void PutActive(Entry& entry, std::string_view event);
  void PutBackoffOrActive(Entry& entry, std::string_view event);
  void PutUnschedulable(Entry& entry, std::string_view event);
  void ForgetStart(std::uint64_t start);
  // Out of flight; null if the pod is gone.
  Entry* Land(const std::string& uid);
  bool MayHelp(const Entry& entry, const ClusterEvent& event) const;
  std::span<const std::unique_ptr<Plugin>> PluginsOf(const Entry& entry) const {
    return options_.plugins_of ? options_.plugins_of(*entry.info) : options_.plugins;
  }
  // Ends the pauses that `event` is to end.
  void CutPauses(const ClusterEvent& event);
  void TrimEvents();
  void ArmBackoffTimer();
  void ArmFlushTimer();
  void UpdateGauges();
  // `entry` begins (1) or ceases (-1) to wait for those who refused it.
  void CountUnschedulable(const Entry& entry, int by);
  void CountIncoming(std::string_view queue, std::string_view event);
  MonotonicTime Now() const { return options_.loop.clock().Monotonic(); }

  const Options options_;
  std::array<PluginSet, static_cast<std::size_t>(EventKind::kCount)> interested_{};
  std::unordered_map<std::string, std::unique_ptr<Entry>> entries_;  // by uid; looked up only
  ActivePods active_;
  BackoffPods refused_backoff_{options_.pauses};
  BackoffPods failed_backoff_{options_.pauses};
  std::map<std::uint64_t, Entry*> cuttable_;  // pods whose pause an event may end; by sequence
  UnschedulablePods unschedulable_;
  std::size_t gated_ = 0;
  std::uint64_t next_sequence_ = 0;

  std::map<std::string, Entry*> in_flight_;
  std::map<std::uint64_t, std::size_t> flight_starts_;  // how many flights began there
  std::deque<ClusterEvent> events_;                     // while pods are in flight
  std::uint64_t first_event_ = 0;                       // number of events_.front()

  TimerHandle backoff_timer_;
  TimerHandle flush_timer_;
};

}  // namespace drakkar::scheduler
