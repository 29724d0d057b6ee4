#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/exec/event_loop.h"
#include "scheduler/cache/claim_cache.h"
#include "scheduler/cache/device_state.h"
#include "scheduler/cache/namespace_labels.h"
#include "scheduler/cache/node_table.h"
#include "scheduler/cache/placements.h"
#include "scheduler/cache/pod_groups.h"
#include "scheduler/cache/taints.h"
#include "scheduler/framework/cluster_event.h"

namespace drakkar {
class FeatureGates;
class Random;
}  // namespace drakkar
namespace drakkar::client {
class Client;
class EventRecorder;
}  // namespace drakkar::client
namespace drakkar::features {
class Framework;
}

namespace drakkar::scheduler {

struct Cycle;
struct SchedulerMetrics;

// What a plugin may read of the cluster and do to it. All plugins of a profile share one context,
// which outlives them. Everything in it belongs to the scheduler's loop.
struct PluginContext {
  EventLoop& loop;  // also provides the clock
  Random& random;
  client::Client& client;
  client::EventRecorder& events;

  const NodeTable& nodes;
  const Placements& placements;  // which pods are on which node, with their labels
  const NamespaceLabels& namespaces;
  const PodGroups& pod_groups;
  ClaimCache& claims;
  DeviceState& devices;  // slices, classes and the allocator

  const FeatureGates& gates;
  // The features that nodes may declare and pods may need (KEP-5328).
  const features::Framework& declared_features;
  SchedulerMetrics& metrics;

  // Reports an event that may help other pods.
  std::function<void(const ClusterEvent&)> notify;
  // Nominates the node for a pod that waits; shown as status.nominatedNodeName.
  std::function<void(const PodInfo& pod, const std::string& node_name)> nominate;
  // Call it when a pod in PreBind has nothing left to write and starts to wait, so that others may
  // write.
  std::function<void()> on_wait_began;
  // Whether the pod, or some pod of the PodGroup, is bound. True if that is unknown.
  std::function<bool(std::string_view uid)> is_bound;
  // Evicts pods of lower priority if that makes the pod fit a node, and returns what it did, or
  // nothing. May be empty, where nothing must be evicted.
  std::function<std::string(Cycle& cycle)> preempt;

  const Clock& clock() const { return loop.clock(); }
  Comparisons comparisons() const;  // of taints
};

}  // namespace drakkar::scheduler
