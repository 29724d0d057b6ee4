#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "features/framework/framework.h"
#include "scheduler/config/profile.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/plugins/dynamic_resources/dynamic_resources.h"

namespace drakkar::scheduler {

struct PluginList {
  std::vector<std::unique_ptr<Plugin>> all;  // in the order in which they are asked
  DynamicResources* dynamic_resources = nullptr;
};

// All plugins with their weights, as the profile wants them. `options` is what the most demanding
// of them needs; the others take their part of it. A plugin has the same id in every profile.
//
// `declared_features` is what nodes may declare and pods may need; not asked for while the gate
// NodeDeclaredFeatures is off.
PluginList MakePlugins(DynamicResources::Options options,
                       const features::Framework& declared_features,
                       const ProfileConfig& profile = {});

// A plugin as configuration files may name it.
struct PluginFacts {
  std::string_view name;
  Points points;
  std::int64_t weight;  // of its score
};
// In the order in which they are asked.
std::span<const PluginFacts> KnownPlugins();
// Whether Kubernetes has a plugin of this name and we do not (yet).
bool IsForeignPlugin(std::string_view name);

}  // namespace drakkar::scheduler
