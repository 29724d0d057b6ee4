#pragma once

#include <map>
#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/event_recorder.h"
#include "client/work_queue.h"
#include "controllers/eviction/pod_evictor.h"
#include "controllers/workload/pods_by_node.h"

namespace drakkar {
class Counter;
class Histogram;
class Metrics;
}  // namespace drakkar

namespace drakkar::controllers {

// Evicts pods from nodes with a NoExecute taint that they do not tolerate, or no longer tolerate:
// after the tolerationSeconds of the toleration that applies, counted from when we saw the taint.
//
// Loop-bound. Bounded by the pods that are to be evicted.
class TaintEvictionController {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::EventRecorder& events;
    Metrics& metrics;
    client::Informer& nodes;
    PodsByNode& pods;
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit TaintEvictionController(Options options);

 private:
  using Done = client::WorkQueue::Done;
  struct Planned {
    std::string uid;  // of the pod
    MonotonicTime since{};
    MonotonicTime at{};
  };

  void OnNode(const api::ObjectPtr& before, const api::ObjectPtr& node);
  void OnPod(const api::ObjectPtr& before, const api::ObjectPtr& pod);
  void Sync(const std::string& key, Done done);
  void Cancel(const api::ObjectPtr& pod);

  const Options options_;
  PodEvictor evictor_;
  Counter& deletions_;
  Histogram& delays_;
  std::map<std::string, Planned> planned_;  // by pod, until it is being deleted
  client::WorkQueue queue_;
  Lifetime lifetime_;
};

}  // namespace drakkar::controllers
