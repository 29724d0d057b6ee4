#pragma once

#include <algorithm>
#include <map>
#include <tuple>

#include "scheduler/queue/queued_pod.h"

namespace drakkar::scheduler {

// Pods that something may have helped but that were tried a short while ago, in order of when their
// pause ends. The pause doubles with each refusal, or with each error in a row.
//
// Ends are told apart by whole seconds only; within one, the order is that of ActivePods, because
// pods may be taken before their time when nothing else is to be done.
class BackoffPods {
 public:
  static constexpr Duration kFirst = std::chrono::seconds(1);
  static constexpr Duration kLongest = std::chrono::seconds(10);
  static constexpr Duration kWindow = std::chrono::seconds(1);

  static Duration PauseOf(const QueuedPod& pod) {
    const int count = pod.errors > 0 ? pod.errors : pod.refusals;
    if (count <= 0) return Duration::zero();
    return std::min(kFirst * (std::int64_t{1} << std::min(count - 1, 10)), kLongest);
  }
  static MonotonicTime EndOf(const QueuedPod& pod) { return pod.queued_at + PauseOf(pod); }

  void Add(QueuedPod* pod) { pods_.emplace(KeyOf(*pod), pod); }
  void Remove(QueuedPod* pod) { pods_.erase(KeyOf(*pod)); }
  bool empty() const { return pods_.empty(); }
  std::size_t size() const { return pods_.size(); }
  // When all pods of the first window are due.
  MonotonicTime next_end() const { return std::get<0>(pods_.begin()->first); }
  QueuedPod* PopFirst() {
    QueuedPod* pod = pods_.begin()->second;
    pods_.erase(pods_.begin());
    return pod;
  }

 private:
  // End of the window, then highest priority, longest wait, arrival.
  using Key = std::tuple<MonotonicTime, std::int64_t, MonotonicTime, std::uint64_t>;
  static Key KeyOf(const QueuedPod& pod) {
    const Duration end = EndOf(pod).time_since_epoch();
    const Duration window = (end + kWindow - Duration(1)) / kWindow * kWindow;
    return {MonotonicTime(window), -pod.info->priority, pod.queued_at, pod.sequence};
  }
  std::map<Key, QueuedPod*> pods_;
};

}  // namespace drakkar::scheduler
