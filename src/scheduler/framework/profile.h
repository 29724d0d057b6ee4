#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "api/tree/draft.h"

namespace drakkar::scheduler {

// The arguments of one plugin (`pluginConfig`). A plugin with arguments derives its own type, named
// `Args`, with the defaults of Kubernetes.
struct PluginArgs {
  virtual ~PluginArgs() = default;
  // Adds the fields to `args` as they would appear in a configuration file.
  virtual void Write(api::Draft& args) const = 0;
};
using PluginArgsPtr = std::shared_ptr<const PluginArgs>;

// A profile's settings for one plugin; see Point in framework/plugin.h for the bits.
struct PluginChoice {
  std::uint16_t points = 0xffff;        // enabled points, among those that the plugin has
  std::int64_t weight = 0;              // weight of its score; 0: the plugin's default
  std::map<std::uint16_t, int> places;  // by point: position in the order; empty: our order
  bool operator==(const PluginChoice&) const = default;
};

// How pods with one spec.schedulerName are scheduled. The defaults are Kubernetes'.
struct ProfileConfig {
  std::string name = "default-scheduler";
  std::map<std::string, PluginChoice, std::less<>> plugins = {};  // by name; absent: as registered
  std::map<std::string, PluginArgsPtr, std::less<>> args = {};    // by plugin; absent: defaults
  int percentage_of_nodes_to_score = 0;  // 0: depends on the number of nodes

  const PluginArgs* FindArgs(std::string_view plugin) const {
    const auto found = args.find(plugin);
    return found == args.end() ? nullptr : found->second.get();
  }
  // The configured arguments of the plugin, or the defaults. `Args` must be the plugin's type.
  template <typename Args>
  Args ArgsOf(std::string_view plugin) const {
    const PluginArgs* found = FindArgs(plugin);
    return found == nullptr ? Args() : static_cast<const Args&>(*found);
  }
  template <typename Args>
  void SetArgs(std::string plugin, Args value) {
    args[std::move(plugin)] = std::make_shared<const Args>(std::move(value));
  }
};

}  // namespace drakkar::scheduler
