// Which plugins there are: the one place that lists them. Order matters: a node is counted under
// the first filter that refuses it, and cheap filters come first.
#include "scheduler/plugins/registry.h"

#include <algorithm>
#include <iterator>

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

namespace {

using enum Point;

// UnsupportedFields is not here: what we do not honour is refused whatever a file says.
constexpr PluginFacts kKnown[] = {
    {"SchedulingGates", kPreEnqueue | Points{0}, 1},
    {"NodeUnschedulable", kFilter | Points{0}, 1},
    {"NodeName", kPreFilter | kFilter, 1},
    {"TaintToleration", kFilter | kScore, 3},
    {"NodeAffinity", kPreFilter | kFilter | kScore, 2},
    {"NodePorts", kPreFilter | kFilter, 1},
    {"NodeResourcesFit", kFilter | kScore, 1},
    {"NodeDeclaredFeatures", kPreFilter | kFilter, 1},
    {"DynamicResources",
     kPreEnqueue | kPreFilter | kFilter | kPostFilter | kPrefer | kScore | kReserve | kPreBind, 2},
    {"NodeResourcesBalancedAllocation", kScore | Points{0}, 1},
    {"DefaultBinder", kBind | Points{0}, 1},
};

constexpr std::string_view kForeign[] = {
    "DefaultPreemption", "GangScheduling",        "ImageLocality",   "InterPodAffinity",
    "NodeVolumeLimits",  "PodTopologySpread",     "VolumeBinding",   "VolumeRestrictions",
    "VolumeZone",        "DeferredPodScheduling", "AzureDiskLimits", "EBSLimits",
    "GCEPDLimits",
};

}  // namespace

std::span<const PluginFacts> KnownPlugins() {
  return kKnown;
}

bool IsForeignPlugin(std::string_view name) {
  return std::find(std::begin(kForeign), std::end(kForeign), name) != std::end(kForeign);
}

PluginList MakePlugins(DynamicResources::Options options,
                       const features::Framework& declared_features, const ProfileConfig& profile) {
  PluginList list;
  auto add = [&](std::unique_ptr<Plugin> plugin) {
    CHECK(list.all.size() < kMaxPlugins);
    plugin->id = static_cast<PluginId>(list.all.size());
    const auto facts = std::find_if(std::begin(kKnown), std::end(kKnown),
                                    [&](const auto& each) { return each.name == plugin->name(); });
    if (facts != std::end(kKnown)) {
      CHECK(facts->points == plugin->points());
      plugin->weight = facts->weight;
    }
    if (const auto chosen = profile.plugins.find(plugin->name()); chosen != profile.plugins.end()) {
      plugin->enabled = chosen->second.points;
      if (chosen->second.weight > 0) plugin->weight = chosen->second.weight;
      plugin->places = chosen->second.places;
    }
    list.all.push_back(std::move(plugin));
  };
  const NodeTable& nodes = options.nodes;
  client::Client& client = options.client;
  EventLoop& loop = options.loop;
  add(std::make_unique<SchedulingGates>());
  add(std::make_unique<UnsupportedFields>());
  add(std::make_unique<NodeUnschedulable>(nodes));
  add(std::make_unique<NodeName>(nodes));
  add(std::make_unique<TaintToleration>(nodes));
  add(std::make_unique<NodeAffinity>(nodes, profile.added_affinity));
  add(std::make_unique<NodePorts>(nodes));
  add(std::make_unique<NodeResourcesFit>(
      nodes, NodeResourcesFit::Options{
                 .scoring = profile.fit,
                 .ignored_resources = profile.ignored_resources,
                 .ignored_groups = profile.ignored_groups,
                 .comes_from_devices = [&devices = options.devices](std::string_view resource) {
                   return devices.StandForResource(resource);
                 }}));
  if (options.gates.Enabled(Gate::kNodeDeclaredFeatures)) {
    add(std::make_unique<NodeDeclaredFeatures>(
        NodeDeclaredFeatures::Options{.nodes = nodes,
                                      .claims = options.claims,
                                      .framework = declared_features,
                                      .version = features::VersionOf(options.gates.emulated())}));
  }
  auto dynamic_resources = std::make_unique<DynamicResources>(std::move(options));
  list.dynamic_resources = dynamic_resources.get();
  add(std::move(dynamic_resources));
  add(std::make_unique<NodeResourcesBalanced>(nodes));
  add(std::make_unique<DefaultBinder>(loop, client));
  return list;
}

}  // namespace drakkar::scheduler
