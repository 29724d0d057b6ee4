// Which plugins there are: the one place that lists them. Order matters: a node is counted under
// the first filter that refuses it, and cheap filters come first.
#include "scheduler/plugins/registry.h"

#include "base/result/check.h"
#include "scheduler/plugins/default_binder/default_binder.h"
#include "scheduler/plugins/node_affinity/node_affinity.h"
#include "scheduler/plugins/node_declared_features/node_declared_features.h"
#include "scheduler/plugins/node_name/node_name.h"
#include "scheduler/plugins/node_ports/node_ports.h"
#include "scheduler/plugins/node_resources/node_resources_fit.h"
#include "scheduler/plugins/node_unschedulable/node_unschedulable.h"
#include "scheduler/plugins/scheduling_gates/scheduling_gates.h"
#include "scheduler/plugins/taint_toleration/taint_toleration.h"
#include "scheduler/plugins/unsupported_fields/unsupported_fields.h"

namespace drakkar::scheduler {

PluginList MakePlugins(DynamicResources::Options options,
                       const features::Framework& declared_features) {
  PluginList list;
  auto add = [&](std::unique_ptr<Plugin> plugin, std::int64_t weight = 1) {
    CHECK(list.all.size() < kMaxPlugins);
    plugin->id = static_cast<PluginId>(list.all.size());
    plugin->weight = weight;
    list.all.push_back(std::move(plugin));
  };
  const NodeTable& nodes = options.nodes;
  client::Client& client = options.client;
  EventLoop& loop = options.loop;
  add(std::make_unique<SchedulingGates>());
  add(std::make_unique<UnsupportedFields>());
  add(std::make_unique<NodeUnschedulable>(nodes));
  add(std::make_unique<NodeName>(nodes));
  add(std::make_unique<TaintToleration>(nodes), 3);
  add(std::make_unique<NodeAffinity>(nodes), 2);
  add(std::make_unique<NodePorts>(nodes));
  add(std::make_unique<NodeResourcesFit>(nodes));
  if (options.gates.Enabled(Gate::kNodeDeclaredFeatures)) {
    add(std::make_unique<NodeDeclaredFeatures>(NodeDeclaredFeatures::Options{
        .nodes = nodes,
        .claims = options.claims,
        .framework = declared_features,
        .version = features::VersionOf(options.gates.emulated())}));
  }
  auto dynamic_resources = std::make_unique<DynamicResources>(std::move(options));
  list.dynamic_resources = dynamic_resources.get();
  add(std::move(dynamic_resources), 2);
  add(std::make_unique<NodeResourcesBalanced>(nodes));
  add(std::make_unique<DefaultBinder>(loop, client));
  return list;
}

}  // namespace drakkar::scheduler
