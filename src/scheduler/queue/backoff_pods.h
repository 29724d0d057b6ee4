#pragma once

#include <algorithm>
#include <map>
#include <tuple>

#include "scheduler/queue/queued_pod.h"

namespace drakkar::scheduler {

// Pods in backoff, ordered by its end. The backoff doubles with each rejection, or with each
// consecutive error.
//
// Expiry times are compared at one-second granularity. Within a second the order is that of
// ActivePods, because pods may be popped early when no other pod is ready.
class BackoffPods {
 public:
  static constexpr Duration kWindow = std::chrono::seconds(1);
  struct Pauses {
    Duration first = std::chrono::seconds(1);
    Duration longest = std::chrono::seconds(10);

    Duration Of(const QueuedPod& pod) const {
      const int count = pod.errors > 0 ? pod.errors : pod.refusals;
      if (count <= 0) return Duration::zero();
      return std::min(first * (std::int64_t{1} << std::min(count - 1, 10)), longest);
    }
    MonotonicTime EndOf(const QueuedPod& pod) const {
      return std::min(pod.queued_at + Of(pod), pod.pause_ends_by);
    }
  };
  explicit BackoffPods(Pauses pauses) : pauses_(pauses) {}

  void Add(QueuedPod* pod) { pods_.emplace(KeyOf(*pod), pod); }
  void Remove(QueuedPod* pod) { pods_.erase(KeyOf(*pod)); }
  bool empty() const { return pods_.empty(); }
  std::size_t size() const { return pods_.size(); }
  // The end of the first one-second window.
  MonotonicTime next_end() const { return std::get<0>(pods_.begin()->first); }
  QueuedPod* PopFirst() {
    QueuedPod* pod = pods_.begin()->second;
    pods_.erase(pods_.begin());
    return pod;
  }

 private:
  // End of the window, then highest priority, longest wait, arrival.
  using Key = std::tuple<MonotonicTime, std::int64_t, MonotonicTime, std::uint64_t>;
  Key KeyOf(const QueuedPod& pod) const {
    const Duration end = pauses_.EndOf(pod).time_since_epoch();
    const Duration window = (end + kWindow - Duration(1)) / kWindow * kWindow;
    return {MonotonicTime(window), -pod.info->priority, pod.queued_at, pod.sequence};
  }
  const Pauses pauses_;
  std::map<Key, QueuedPod*> pods_;
};

}  // namespace drakkar::scheduler
