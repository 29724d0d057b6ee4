#pragma once

#include <memory>
#include <vector>

#include "scheduler/framework/plugin.h"
#include "scheduler/plugins/dynamic_resources/dynamic_resources.h"

namespace drakkar::scheduler {

struct PluginList {
  std::vector<std::unique_ptr<Plugin>> all;    // in the order in which they are asked
  DynamicResources* dynamic_resources = nullptr;
};

// All plugins with their weights. `options` is what the most demanding of them needs; the others
// take their part of it.
PluginList MakePlugins(DynamicResources::Options options);

}  // namespace drakkar::scheduler
