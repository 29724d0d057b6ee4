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

// Pods whose resource status has to be looked at again, from any number of sources (devices of DRA
// drivers; device plugins would be another) to the one who writes statuses.
//
// A pod that is waiting is not queued twice, whoever names it, so a burst costs each pod one look.
// Pods are served in the order they were named, kMaxPodsPerTurn in a turn of the loop: a source
// that names the same pods again and again cannot keep others waiting. Loop-bound; as long as the
// list of pods.
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
