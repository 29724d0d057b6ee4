// The list of plugins. Order matters: a node is counted under the first filter that rejects it, and
// cheap filters come first.
#include "scheduler/plugins/registry.h"

#include <algorithm>
#include <iterator>

#include "scheduler/plugins/default_binder/default_binder.h"
#include "scheduler/plugins/default_preemption/default_preemption.h"
#include "scheduler/plugins/dynamic_resources/dynamic_resources.h"
#include "scheduler/plugins/inter_pod_affinity/inter_pod_affinity.h"
#include "scheduler/plugins/node_affinity/node_affinity.h"
#include "scheduler/plugins/node_declared_features/node_declared_features.h"
#include "scheduler/plugins/node_name/node_name.h"
#include "scheduler/plugins/node_ports/node_ports.h"
#include "scheduler/plugins/node_resources/node_resources_balanced.h"
#include "scheduler/plugins/node_resources/node_resources_fit.h"
#include "scheduler/plugins/node_unschedulable/node_unschedulable.h"
#include "scheduler/plugins/pod_topology_spread/pod_topology_spread.h"
#include "scheduler/plugins/scheduling_gates/scheduling_gates.h"
#include "scheduler/plugins/taint_toleration/taint_toleration.h"
#include "scheduler/plugins/unsupported_fields/unsupported_fields.h"

namespace drakkar::scheduler {
namespace {

struct RowOptions {
  std::int64_t weight = 1;
  std::optional<Gate> gate = std::nullopt;
  bool is_mandatory = false;
};

template <typename T>
constexpr PluginRow Row(std::string_view name, const RowOptions& options = {}) {
  PluginRow row{.name = name,
                .points = PointsOf<T>(),
                .weight = options.weight,
                .gate = options.gate,
                .is_mandatory = options.is_mandatory};
  if constexpr (requires { typename T::Args; }) {
    using Args = typename T::Args;
    row.make = [](const PluginContext& context, const PluginArgs* args) -> std::unique_ptr<Plugin> {
      return std::make_unique<T>(context,
                                 args == nullptr ? Args() : static_cast<const Args&>(*args));
    };
    row.read_args = &Args::Read;
    row.default_args = []() -> PluginArgsPtr { return std::make_shared<const Args>(); };
  } else {
    row.make = [](const PluginContext& context, const PluginArgs*) -> std::unique_ptr<Plugin> {
      return std::make_unique<T>(context);
    };
  }
  return row;
}

constexpr PluginRow kPlugins[] = {
    Row<SchedulingGates>("SchedulingGates"),
    // Mandatory: a pod is never placed as if an unsupported field were not set.
    Row<UnsupportedFields>("UnsupportedFields", {.is_mandatory = true}),
    Row<NodeUnschedulable>("NodeUnschedulable"),
    Row<NodeName>("NodeName"),
    Row<TaintToleration>("TaintToleration", {.weight = 3}),
    Row<NodeAffinity>("NodeAffinity", {.weight = 2}),
    Row<NodePorts>("NodePorts"),
    Row<NodeResourcesFit>("NodeResourcesFit"),
    Row<PodTopologySpread>("PodTopologySpread", {.weight = 2}),
    Row<InterPodAffinity>("InterPodAffinity", {.weight = 2}),
    Row<NodeDeclaredFeatures>("NodeDeclaredFeatures", {.gate = Gate::kNodeDeclaredFeatures}),
    Row<DynamicResources>("DynamicResources", {.weight = 2}),
    Row<DefaultPreemption>("DefaultPreemption"),
    Row<NodeResourcesBalanced>("NodeResourcesBalancedAllocation"),
    Row<DefaultBinder>("DefaultBinder"),
};
static_assert(std::size(kPlugins) <= kMaxPlugins);

constexpr std::string_view kForeign[] = {
    "GangScheduling",     "ImageLocality", "NodeVolumeLimits",      "VolumeBinding",
    "VolumeRestrictions", "VolumeZone",    "DeferredPodScheduling", "AzureDiskLimits",
    "EBSLimits",          "GCEPDLimits",
};

}  // namespace

std::span<const PluginRow> PluginRows() {
  return kPlugins;
}

const PluginRow* FindPluginRow(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kPlugins), std::end(kPlugins),
                   [&](const PluginRow& row) { return row.name == name && !row.is_mandatory; });
  return found == std::end(kPlugins) ? nullptr : found;
}

bool IsForeignPlugin(std::string_view name) {
  return std::find(std::begin(kForeign), std::end(kForeign), name) != std::end(kForeign);
}

Plugins MakePlugins(const PluginContext& context, const ProfileConfig& profile) {
  Plugins plugins;
  for (const PluginRow& row : kPlugins) {
    if (row.gate && !context.gates.Enabled(*row.gate)) continue;
    Plugin::Registration registration{.name = row.name,
                                      .id = static_cast<PluginId>(&row - std::begin(kPlugins)),
                                      .weight = row.weight,
                                      .points = row.points};
    if (const auto chosen = profile.plugins.find(row.name); chosen != profile.plugins.end()) {
      const PluginChoice& choice = chosen->second;
      registration.points = static_cast<Points>(row.points & choice.points);
      if (choice.weight > 0) registration.weight = choice.weight;
      registration.places = choice.places;
    }
    plugins.push_back(row.make(context, profile.FindArgs(row.name)));
    plugins.back()->Register(std::move(registration));
  }
  return plugins;
}

}  // namespace drakkar::scheduler
