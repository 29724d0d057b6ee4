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

// The pods without a node. Each is in exactly one state: active (ready), in backoff after an
// attempt, rejected and waiting for an event (unschedulable, gated pods included), or in flight
// (from Pop until Done or one of the Return functions).
//
// Guarantees: An event wakes a rejected pod if and only if a plugin that rejected it says that the
// event may help. An event that arrives while a pod is in flight is not lost. A rejected pod is
// retried after kLongestWait in any case. While no pod is active, pods in backoff after a rejection
// (not after an error) are popped early. A backoff after an error ends early on the events given
// for it, but for one pod not twice within the shortest backoff.
//
// Loop-bound. One entry per unbound pod. At most kMaxInFlightEvents events are kept for pods in
// flight; a pod that missed some is retried without waiting for an event.
class SchedulingQueue {
 public:
  static constexpr Duration kLongestWait = std::chrono::minutes(5);
  static constexpr Duration kFlushPeriod = std::chrono::seconds(30);
  static constexpr std::size_t kMaxInFlightEvents = 4'096;

  struct Options {
    EventLoop& loop;
    std::span<const std::unique_ptr<Plugin>> plugins;
    // The plugins of a pod's profile, if there are several profiles: the same ids, possibly
    // configured differently. Empty: `plugins` for all pods.
    std::function<std::span<const std::unique_ptr<Plugin>>(const PodInfo& pod)> plugins_of;
    BackoffPods::Pauses pauses;
    SchedulerMetrics* metrics = nullptr;  // may be null
    // The metrics of a pod's profile, if there are several profiles. Empty: `metrics` for all pods.
    std::function<SchedulerMetrics*(const PodInfo& pod)> metrics_of;
    std::function<void()> on_active;  // a pod became ready to be popped
  };
  explicit SchedulingQueue(Options options);

  void Add(PodInfoPtr pod);
  // Updates a pod, or adds it.
  void Update(PodInfoPtr pod);
  void Remove(const std::string& uid);

  // The next pod to schedule, which is then in flight; null if none is ready. Valid until the pod
  // is removed or is no longer in flight.
  QueuedPod* Pop();
  // True if Pop would return a pod.
  bool HasReady() const { return !active_.empty() || !refused_backoff_.empty(); }

  // The pod is being bound, which may take long (KEP-5007), so events are no longer kept for it. It
  // stays in flight until Done or ReturnFailed.
  void OnBindingBegins(const std::string& uid);

  // These end a pod's time in flight. A pod that was removed in the meantime is dropped.
  void Done(const std::string& uid);  // it was bound
  void ReturnRefused(const std::string& uid, PluginSet rejected_by);
  void ReturnFailed(const std::string& uid, Retry retry = {});  // an error: retry with backoff

  void OnEvent(const ClusterEvent& event);

  // Where a pod is, for explanations.
  struct Standing {
    bool ready = false;
    bool in_flight = false;
    bool gated = false;
    bool in_backoff = false;
    MonotonicTime backoff_ends{};  // if it is in backoff
  };
  Standing StandingOf(const std::string& uid) const;

  // A pod in the queue or in flight; null if it is neither.
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
    bool removed = false;  // removed while in flight
    bool in_error_backoff = false;
    EventMask pause_ended_by = 0;  // events that end the backoff after an error
    // When an event last cut its backoff short.
    std::optional<MonotonicTime> last_cut;
    bool binding = false;            // in flight, and no events are kept for it
    std::uint64_t flight_start = 0;  // number of the first event after it was popped
  };

  // Removes it from its current state.
  void Take(Entry& entry);
  // Runs PreEnqueue. The pod is then active or gated.
  void Enter(Entry& entry, std::string_view event);
  void PutActive(Entry& entry, std::string_view event);
  void PutBackoffOrActive(Entry& entry, std::string_view event);
  void PutUnschedulable(Entry& entry, std::string_view event);
  void ForgetStart(std::uint64_t start);
  // Ends the pod's time in flight; null if the pod was removed.
  Entry* Land(const std::string& uid);
  bool MayHelp(const Entry& entry, const ClusterEvent& event) const;
  std::span<const std::unique_ptr<Plugin>> PluginsOf(const Entry& entry) const {
    return options_.plugins_of ? options_.plugins_of(*entry.info) : options_.plugins;
  }
  // Ends the backoffs that `event` cuts short.
  void CutPauses(const ClusterEvent& event);
  void TrimEvents();
  void ArmBackoffTimer();
  void ArmFlushTimer();
  void UpdateGauges();
  // `entry` starts (1) or stops (-1) waiting because of the plugins that rejected it.
  void CountUnschedulable(const Entry& entry, int by);
  void CountIncoming(std::string_view queue, std::string_view event);
  MonotonicTime Now() const { return options_.loop.clock().Monotonic(); }

  const Options options_;
  std::array<PluginSet, static_cast<std::size_t>(EventKind::kCount)> interested_{};
  std::unordered_map<std::string, std::unique_ptr<Entry>> entries_;  // by uid; never iterated
  ActivePods active_;
  BackoffPods refused_backoff_{options_.pauses};
  BackoffPods failed_backoff_{options_.pauses};
  // Pods whose backoff an event may cut short, by sequence.
  std::map<std::uint64_t, Entry*> cuttable_;
  UnschedulablePods unschedulable_;
  std::size_t gated_ = 0;
  std::uint64_t next_sequence_ = 0;

  std::map<std::string, Entry*> in_flight_;
  // By event number: number of pods in flight since then.
  std::map<std::uint64_t, std::size_t> flight_starts_;
  std::deque<ClusterEvent> events_;  // kept while pods are in flight
  std::uint64_t first_event_ = 0;    // number of events_.front()

  TimerHandle backoff_timer_;
  TimerHandle flush_timer_;
};

}  // namespace drakkar::scheduler
