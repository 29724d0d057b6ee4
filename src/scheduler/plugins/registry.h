#pragma once

#include <memory>
#include <vector>

#include "features/framework/framework.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/plugins/dynamic_resources/dynamic_resources.h"

namespace drakkar::scheduler {

struct PluginList {
  std::vector<std::unique_ptr<Plugin>> all;    // in the order in which they are asked
  DynamicResources* dynamic_resources = nullptr;
};

// All plugins with their weights. `options` is what the most demanding of them needs; the others
// take their part of it.
//
// `declared_features` is what nodes may declare and pods may need; not asked for while the gate
// NodeDeclaredFeatures is off.
PluginList MakePlugins(DynamicResources::Options options,
                       const features::Framework& declared_features);

}  // namespace drakkar::scheduler
