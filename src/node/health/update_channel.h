#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
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
// starve others. A pod that was updated kMaxPerWindow times within kWindow waits for the next
// window: a driver whose devices flap must not make the node write statuses all the time.
// Loop-bound; bounded by the number of pods.
class UpdateChannel {
 public:
  static constexpr std::size_t kMaxPodsPerTurn = 64;
  static constexpr Duration kWindow = std::chrono::seconds(1);
  static constexpr int kMaxPerWindow = 20;

  UpdateChannel(EventLoop& loop, Metrics* metrics,
                std::function<void(const std::string& pod_uid)> consumer);
  ~UpdateChannel();

  // `source` is for the metrics: "dra".
  void Send(const std::string& source, const std::set<std::string>& pod_uids);
  std::size_t waiting() const { return queue_.size() + postponed_.size(); }

 private:
  void Enqueue(const std::string& uid);
  void PostDelivery();
  void Deliver();
  void EndWindow();

  EventLoop& loop_;
  Metrics* metrics_;
  const std::function<void(const std::string&)> consumer_;
  std::deque<std::string> queue_;
  std::set<std::string> queued_;
  bool posted_ = false;
  // This window: how often each pod was updated, and who waits for the next one.
  std::map<std::string, int> delivered_;
  std::set<std::string> postponed_;
  TimerHandle window_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
