#pragma once

#include <vector>

#include "allocator/testing/simple_expressions.h"
#include "base/testing/seeded_loop.h"
#include "client/event_recorder.h"
#include "client/silent_client.h"
#include "features/catalog/catalog.h"
#include "features/gates/feature_gates.h"
#include "scheduler/framework/metrics.h"
#include "scheduler/framework/plugin_context.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::scheduler {

// A PluginContext over empty caches, for tests of one plugin and for benchmarks. Writes nothing,
// and records events for other pods.
class TestContext {
 public:
  explicit TestContext(FeatureGates feature_gates = {}) : gates(std::move(feature_gates)) {}

  // Adds a node to all caches.
  NodeIndex AddNode(const api::ObjectPtr& node) {
    const NodeIndex index = placements.SetNode(node);
    devices.SetNode(index, node);
    return index;
  }

  SeededLoop loop;
  const FeatureGates gates;
  allocator::SimpleExpressions expressions;
  Metrics registry;
  SchedulerMetrics metrics{registry, "test"};
  client::SilentClient client;
  client::EventRecorder events{{.loop = loop, .client = client, .component = "test"}};
  NodeTable nodes;
  Placements placements{nodes};
  NamespaceLabels namespaces;
  PodGroups pod_groups;
  DeviceState devices{gates, expressions, loop.random()};
  ClaimCache claims{devices.allocated()};
  std::vector<ClusterEvent> notified;

  const PluginContext context{
      .loop = loop,
      .random = loop.random(),
      .client = client,
      .events = events,
      .nodes = nodes,
      .placements = placements,
      .namespaces = namespaces,
      .pod_groups = pod_groups,
      .claims = claims,
      .devices = devices,
      .gates = gates,
      .declared_features = features::DefaultFramework(),
      .metrics = metrics,
      .notify = [this](const ClusterEvent& event) { notified.push_back(event); },
      .nominate = [](const PodInfo&, const std::string&) {},
      .on_wait_began = [] {},
      .is_bound = [](std::string_view) { return false; }};
};

}  // namespace drakkar::scheduler
