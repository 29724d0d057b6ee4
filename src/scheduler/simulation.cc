#include "scheduler/simulation.h"

#include "client/event_recorder.h"
#include "client/silent_client.h"
#include "features/catalog/catalog.h"
#include "scheduler/cache/claim_cache.h"
#include "scheduler/cache/device_state.h"
#include "scheduler/cache/node_table.h"
#include "scheduler/framework/framework.h"
#include "scheduler/framework/metrics.h"
#include "scheduler/plugins/registry.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::scheduler {
Result<SimulationAnswer> Simulate(const Simulation& simulation, SimulationOptions options) {
  client::SilentClient client;
  Metrics registry;
  SchedulerMetrics metrics(registry, "simulation");
  client::EventRecorder events({.loop = options.loop,
                                .client = client,
                                .component = "simulation",
                                .instance = "simulation"});
  NodeTable nodes;
  DeviceState devices(options.gates, options.compiler, options.random);
  ClaimCache claims(devices.allocated());
  const PluginList plugins =
      MakePlugins({.loop = options.loop,
                   .random = options.random,
                   .client = client,
                   .events = events,
                   .nodes = nodes,
                   .devices = devices,
                   .claims = claims,
                   .gates = options.gates,
                   .metrics = metrics,
                   .filter_timeout = Duration::zero(),
                   .binding_timeout = std::chrono::minutes(10),
                   .notify = [](const ClusterEvent&) {},
                   .nominate = [](const PodInfo&, const std::string&) {},
                   .on_wait_began = [] {},
                   .is_bound = [](std::string_view) { return false; }},
                  options.declared_features != nullptr ? *options.declared_features
                                                       : features::DefaultFramework());
  for (const api::ObjectPtr& node : simulation.nodes) devices.SetNode(nodes.SetNode(node), node);
  for (const api::ObjectPtr& slice : simulation.slices) devices.SetSlice(slice);
  for (const api::ObjectPtr& each : simulation.classes) devices.SetClass(each);
  for (const api::ObjectPtr& rule : simulation.taint_rules) devices.SetTaintRule(rule);
  for (const api::ObjectPtr& claim : simulation.claims) claims.Observe(claim);

  SimulationAnswer answer;
  Cycle cycle;
  cycle.pod = MakePodInfo(simulation.pod);
  for (const auto& plugin : plugins.all) {
    if (!plugin->Has(Point::kPreEnqueue)) continue;
    const Status status = plugin->PreEnqueue(*cycle.pod);
    if (status.ok()) continue;
    answer.message = status.Message();
    return answer;
  }
  Framework framework(options.loop, nodes, plugins.all, nullptr);
  const Decision decision = framework.Decide(cycle, kNoNode);
  if (decision.status.IsRejected()) {
    answer.message = decision.diagnosis.Message(nodes.node_count());
    return answer;
  }
  if (!decision.status.ok()) return Internal(decision.status.Message());
  cycle.node = decision.node;
  cycle.node_name = nodes.name(decision.node);
  if (const Status reserved = framework.Reserve(cycle); !reserved.ok()) {
    return Internal(reserved.Message());
  }
  answer.fits = true;
  answer.node = cycle.node_name;
  for (const PodClaim& each : cycle.pod->claims) {
    const CachedClaim* claim = claims.Find(cycle.pod->ClaimKey(each));
    if (claim == nullptr || claim->counted == nullptr) continue;
    for (const auto& result : claim->counted->results) {
      answer.devices.push_back(
          {each.claim_name, result.request, result.id.driver, result.id.pool, result.id.device});
    }
  }
  framework.Unreserve(cycle);
  return answer;
}

}  // namespace drakkar::scheduler
