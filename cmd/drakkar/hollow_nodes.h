#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "features/gates/feature_gates.h"
#include "node/admission/node_features.h"

namespace drakkar::client {
class SharedWatches;
}

namespace drakkar::cmd {

// What the containers of a pod do on a hollow node, as annotations of the pod.
inline constexpr char kHollowRunsFor[] = "hollow.drakkar.io/runs-for";    // "30s"; until stopped
inline constexpr char kHollowExitCode[] = "hollow.drakkar.io/exit-code";  // after runs-for; 0
inline constexpr char kHollowCpu[] = "hollow.drakkar.io/cpu";             // "250m"
inline constexpr char kHollowMemory[] = "hollow.drakkar.io/memory";       // "64Mi"

struct HollowOptions {
  EventLoop& loop;
  Random& random;
  client::Client& client;  // of a user who may act for every node
  FeatureGates gates;
  node::NodeFeatureOptions features;
  std::string name_prefix = "hollow-";  // followed by 1, 2, ...
  int count = 1;
  int devices = 0;  // of each node; 0: no driver
  std::int64_t cpus = 32;
  std::int64_t memory_gib = 256;
  // Interval at which one device of the nodes changes between healthy and unhealthy; zero: never.
  Duration health_changes_every{};
};

// Many nodes in one process: real node agents and real reference drivers, each on a machine in
// memory with simulated containers. All API traffic is real: registration, leases, statuses,
// slices, pods, claims, health. They share one client and one watch of each collection
// (client/shared_watches.h), and one loop.
//
// Nodes start one after the other, so that their heartbeats are spread over their interval.
// Deterministic: the random numbers and the clock decide everything.
class HollowNodes {
 public:
  // All nodes start within kStartInterval, with at least kLeastStartGap and at most kMostStartGap
  // between two starts.
  static constexpr Duration kStartInterval = std::chrono::seconds(10);
  static constexpr Duration kLeastStartGap = std::chrono::milliseconds(5);
  static constexpr Duration kMostStartGap = std::chrono::milliseconds(50);
  static constexpr int kMaxCount = 10'000;
  static constexpr int kMaxDevices = 128;

  explicit HollowNodes(HollowOptions options);
  ~HollowNodes();
  HollowNodes(const HollowNodes&) = delete;
  HollowNodes& operator=(const HollowNodes&) = delete;

  void Start();
  void Stop();
  Duration start_gap() const;
  std::size_t started() const { return nodes_.size(); }

 private:
  struct HollowNode;
  void StartNext();
  void ChangeHealth();

  const HollowOptions options_;
  std::unique_ptr<client::SharedWatches> watches_;
  std::vector<std::unique_ptr<HollowNode>> nodes_;
  TimerHandle next_;
  TimerHandle health_;
  Lifetime lifetime_;
};

}  // namespace drakkar::cmd
