#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result/check.h"
#include "features/gates/feature_gates.h"
#include "scheduler/args/fields.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/framework/plugin_context.h"
#include "scheduler/framework/profile.h"

namespace drakkar::scheduler {

// A row of the registry.
struct PluginRow {
  std::string_view name;
  Points points = 0;                        // the points it overrides
  std::int64_t weight = 1;                  // weight of its score
  std::optional<Gate> gate = std::nullopt;  // the plugin is not created while this is off
  bool is_mandatory = false;                // configuration files can neither name nor disable it
  std::unique_ptr<Plugin> (*make)(const PluginContext& context, const PluginArgs* args) = nullptr;
  // Null if the plugin takes no arguments. `fields` keeps the errors.
  PluginArgsPtr (*read_args)(Fields& fields, const FeatureGates& gates) = nullptr;
  PluginArgsPtr (*default_args)() = nullptr;
};

// In the order in which they run.
std::span<const PluginRow> PluginRows();
// Null if no plugin has this name, or if files may not name it.
const PluginRow* FindPluginRow(std::string_view name);
// Whether this is a Kubernetes plugin that is not supported here.
bool IsForeignPlugin(std::string_view name);

using Plugins = std::vector<std::unique_ptr<Plugin>>;

// Creates all plugins whose gates are on, configured by the profile. `context` must outlive them. A
// plugin has the same id in every profile.
Plugins MakePlugins(const PluginContext& context, const ProfileConfig& profile = {});

// The plugin of this type; there must be one.
template <typename T>
T& GetPlugin(const Plugins& plugins) {
  T* found = nullptr;
  for (const auto& plugin : plugins) {
    if (found == nullptr) found = dynamic_cast<T*>(plugin.get());
  }
  CHECK(found != nullptr);
  return *found;
}

}  // namespace drakkar::scheduler
