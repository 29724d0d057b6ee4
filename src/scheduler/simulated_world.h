#pragma once

#include "client/event_recorder.h"
#include "client/silent_client.h"
#include "scheduler/cache/claim_cache.h"
#include "scheduler/cache/device_state.h"
#include "scheduler/cache/namespace_labels.h"
#include "scheduler/cache/node_table.h"
#include "scheduler/cache/placements.h"
#include "scheduler/cache/pod_groups.h"
#include "scheduler/framework/framework.h"
#include "scheduler/framework/metrics.h"
#include "scheduler/plugins/registry.h"
#include "scheduler/simulation.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::scheduler {

// The scheduler's caches and plugins over the given objects. Does no I/O.
class SimulatedWorld {
 public:
  SimulatedWorld(const Simulation& simulation, const SimulationOptions& options);
  SimulatedWorld(const SimulatedWorld&) = delete;
  SimulatedWorld& operator=(const SimulatedWorld&) = delete;

  // Why the pod would not enter the queue; empty if it would.
  std::string PreEnqueue(const PodInfo& pod) const;

 private:
  const FeatureGates gates_;
  client::SilentClient client_;
  Metrics registry_;
  SchedulerMetrics metrics_{registry_, "simulation"};
  client::EventRecorder events_;

 public:
  NodeTable nodes;
  Placements placements{nodes};
  NamespaceLabels namespaces;
  PodGroups pod_groups;
  DeviceState devices;
  ClaimCache claims;
  const PluginContext context;
  Plugins plugins;
  Framework framework;
};

}  // namespace drakkar::scheduler
