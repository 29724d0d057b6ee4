#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/client.h"
#include "features/gates/feature_gates.h"
#include "scheduler/framework/profile.h"
#include "scheduler/state.h"

namespace drakkar {
class Metrics;
}
namespace drakkar::device {
class ExpressionCompiler;
}

namespace drakkar::features {
class Framework;
}

namespace drakkar::scheduler {

// Assigns nodes and devices to pods.
//
//   Scheduler scheduler({.loop = loop, .random = random, .client = client, .metrics = metrics,
//                        .compiler = compiler});
//   scheduler.Start();
//
// Its state is in the API: a scheduler that is stopped, killed or replaced at any point loses
// nothing, and a device is never allocated twice as long as one scheduler is active. It never
// blocks; many bindings are in flight at once.
//
// Loop-bound: created, used and destroyed on `loop`. Bounded by the number of pods, nodes, claims
// and slices in the cluster.
class Scheduler {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    Metrics& metrics;
    device::ExpressionCompiler& compiler;  // for CEL selectors
    FeatureGates gates;
    // How pods are scheduled, by spec.schedulerName. Pods that name none of these profiles are
    // ignored. At least one profile, with distinct names.
    std::vector<ProfileConfig> profiles = {ProfileConfig{}};
    std::string instance;  // shown in events; empty: the profile's name
    // The features that nodes may declare and pods may need; null: the catalog.
    const features::Framework* declared_features = nullptr;
    Duration first_backoff = std::chrono::seconds(1);
    Duration longest_backoff = std::chrono::seconds(10);
  };
  explicit Scheduler(Options options);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Fills the caches, then starts scheduling. Call it once.
  void Start();
  // Starts no new attempts and ignores outstanding responses. Idempotent; the destructor calls it.
  void Stop();

  // The caches have been filled.
  bool IsReady() const;

  // Current state, for health pages and tests.
  struct Counts {
    std::size_t active = 0;
    std::size_t backoff = 0;
    std::size_t unschedulable = 0;
    std::size_t gated = 0;
    std::size_t binding = 0;  // in flight, waiting pods included
    std::size_t waiting_for_conditions = 0;
    std::size_t with_failed_devices = 0;  // pods whose failed devices are remembered
  };
  Counts counts() const;

  // What it knows about the cluster and about one pod ("namespace/name"; may be empty). Copies one
  // pointer per object. Requires IsReady.
  SchedulerState State(const std::string& pod_key) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drakkar::scheduler
