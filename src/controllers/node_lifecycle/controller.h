#pragma once

#include <map>
#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/event_recorder.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"
#include "controllers/node_lifecycle/planner.h"
#include "controllers/node_lifecycle/zones.h"
#include "controllers/workload/pods_by_node.h"

namespace drakkar::controllers {

// Watches the heartbeats of nodes: their leases and statuses. A node without either for
// `grace_period` becomes Unknown, and its pods not ready. Keeps the taints that follow from
// conditions; the taint eviction controller then evicts the pods.
//
// Heartbeats are timed by our clock from the moment we see them, so clocks may differ. Loop-bound.
// Bounded by the number of nodes.
class NodeLifecycleController {
 public:
  struct Timing {
    Duration period = std::chrono::seconds(5);          // between two rounds over all nodes
    Duration grace_period = std::chrono::seconds(50);   // without a heartbeat
    Duration startup_grace = std::chrono::seconds(60);  // without a first status
  };
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::EventRecorder& events;
    client::Informer& nodes;
    client::Informer& leases;  // of kube-node-lease
    PodsByNode& pods;
    Timing timing = {};
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit NodeLifecycleController(Options options);

 private:
  using Done = client::WorkQueue::Done;
  struct Heartbeats {
    MonotonicTime last{};
    std::string heartbeat;  // lastHeartbeatTime of the condition Ready; "" if it never reported
    bool has_reported = false;
    std::int64_t lease_version = 0;
  };

  void OnNode(const api::ObjectPtr& node);
  void OnLease(const api::Object& lease);
  void Round();
  bool IsLate(const api::Object& node) const;
  void Sync(const std::string& name, Done done);
  void ConfirmLate(const api::ObjectPtr& node, Done done);
  void MarkUnknown(const api::ObjectPtr& node, Done done);
  void MarkPodsNotReady(const api::Object& node);
  void SyncTaints(const api::ObjectPtr& node, Done done);

  const Options options_;
  client::ScopedClient client_;
  std::map<std::string, Heartbeats, std::less<>> heartbeats_;  // by node
  Zones zones_;
  client::WorkQueue queue_;
  TimerHandle next_round_;
  Lifetime lifetime_;
};

}  // namespace drakkar::controllers
