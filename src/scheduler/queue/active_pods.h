#pragma once

#include <set>

#include "scheduler/queue/queued_pod.h"

namespace drakkar::scheduler {

// Pods ready to be scheduled: highest priority first, then the one that has waited longest.
class ActivePods {
 public:
  void Add(QueuedPod* pod) { pods_.insert(pod); }
  void Remove(QueuedPod* pod) { pods_.erase(pod); }
  bool empty() const { return pods_.empty(); }
  std::size_t size() const { return pods_.size(); }
  QueuedPod* PopFirst() {
    QueuedPod* pod = *pods_.begin();
    pods_.erase(pods_.begin());
    return pod;
  }

 private:
  struct Order {
    bool operator()(const QueuedPod* a, const QueuedPod* b) const {
      if (a->info->priority != b->info->priority) return a->info->priority > b->info->priority;
      if (a->queued_at != b->queued_at) return a->queued_at < b->queued_at;
      return a->sequence < b->sequence;
    }
  };
  std::set<QueuedPod*, Order> pods_;
};

}  // namespace drakkar::scheduler
