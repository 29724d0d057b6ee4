#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"

namespace drakkar {
class Metrics;
}

namespace drakkar::node {

// A queue of pods whose resource status must be recomputed, from any number of sources (DRA
// devices; device plugins would be another) to the writer of statuses.
//
// A waiting pod is not queued twice, so a burst costs each pod one update. Pods are served in
// order, kMaxPodsPerTurn per turn of the loop, so a source that keeps naming the same pods cannot
// starve others. Loop-bound; bounded by the number of pods.
class UpdateChannel {
 public:
  static constexpr std::size_t kMaxPodsPerTurn = 64;

  UpdateChannel(EventLoop& loop, Metrics* metrics,
                std::function<void(const std::string& pod_uid)> consumer);
  ~UpdateChannel();

  // `source` is for the metrics: "dra".
  void Send(const std::string& source, const std::set<std::string>& pod_uids);
  std::size_t waiting() const { return queue_.size(); }

 private:
  void Deliver();

  EventLoop& loop_;
  Metrics* metrics_;
  const std::function<void(const std::string&)> consumer_;
  std::deque<std::string> queue_;
  std::set<std::string> queued_;
  bool posted_ = false;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
