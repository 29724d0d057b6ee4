#include "scheduler/simulated_world.h"

#include "features/catalog/catalog.h"
#include "scheduler/plugins/dynamic_resources/dynamic_resources_args.h"

namespace drakkar::scheduler {

namespace {

// An explanation has no time limit.
ProfileConfig WithoutTimeout(ProfileConfig profile) {
  auto args = profile.ArgsOf<DynamicResourcesArgs>("DynamicResources");
  args.filter_timeout = Duration::zero();
  profile.SetArgs("DynamicResources", std::move(args));
  return profile;
}

}  // namespace

SimulatedWorld::SimulatedWorld(const Simulation& simulation, const SimulationOptions& options)
    : gates_(options.gates),
      events_({.loop = options.loop,
               .client = client_,
               .component = "simulation",
               .instance = "simulation"}),
      devices(gates_, options.compiler, options.random),
      claims(devices.allocated()),
      context{.loop = options.loop,
              .random = options.random,
              .client = client_,
              .events = events_,
              .nodes = nodes,
              .placements = placements,
              .namespaces = namespaces,
              .pod_groups = pod_groups,
              .claims = claims,
              .devices = devices,
              .gates = gates_,
              .declared_features = options.declared_features != nullptr
                                       ? *options.declared_features
                                       : features::DefaultFramework(),
              .metrics = metrics_,
              .notify = [](const ClusterEvent&) {},
              .nominate = [](const PodInfo&, const std::string&) {},
              .on_wait_began = [] {},
              .is_bound = [](std::string_view) { return false; }},
      plugins(MakePlugins(context, WithoutTimeout(options.profile))),
      framework(options.loop, nodes, plugins, nullptr) {
  for (const api::ObjectPtr& node : simulation.nodes) {
    devices.SetNode(placements.SetNode(node), node);
  }
  for (const api::ObjectPtr& ns : simulation.namespaces) namespaces.Set(ns);
  for (const api::ObjectPtr& group : simulation.pod_groups) pod_groups.Set(group);
  for (const api::ObjectPtr& slice : simulation.slices) devices.SetSlice(slice);
  for (const api::ObjectPtr& each : simulation.classes) devices.SetClass(each);
  if (gates_.Enabled(Gate::kDRADeviceTaintRules)) {
    for (const api::ObjectPtr& rule : simulation.taint_rules) devices.SetTaintRule(rule);
  }
  for (const api::ObjectPtr& claim : simulation.claims) claims.Observe(claim);
  for (const api::ObjectPtr& object : simulation.pods) {
    PodInfoPtr pod = MakePodInfo(object);
    if (pod->HasEnded() || object->uid() == simulation.pod->uid()) continue;
    if (!pod->node_name.empty()) {
      placements.Confirm(std::move(pod));
    } else if (!pod->nominated_node.empty() && !object->is_being_deleted()) {
      std::string node = pod->nominated_node;
      placements.Nominate(std::move(pod), std::move(node));
    }
  }
}

std::string SimulatedWorld::PreEnqueue(const PodInfo& pod) const {
  for (const auto& plugin : plugins) {
    if (!plugin->Has(Point::kPreEnqueue)) continue;
    if (const Status status = plugin->PreEnqueue(pod); !status.ok()) return status.Message();
  }
  return {};
}

}  // namespace drakkar::scheduler
