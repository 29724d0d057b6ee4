#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "api/tree/draft.h"

namespace drakkar::scheduler {

// The arguments of one plugin (`pluginConfig`). A plugin that takes arguments derives its own,
// whose defaults are Kubernetes', and names them `Args`.
struct PluginArgs {
  virtual ~PluginArgs() = default;
  // Adds the fields to `args`, as a file would have them.
  virtual void Write(api::Draft& args) const = 0;
};
using PluginArgsPtr = std::shared_ptr<const PluginArgs>;

// What one profile does with a plugin; see Point in framework/plugin.h for the bits.
struct PluginChoice {
  std::uint16_t points = 0xffff;        // those it takes part in, of those it has
  std::int64_t weight = 0;              // of its score; 0: the plugin's default
  std::map<std::uint16_t, int> places;  // by point: its place in the order; empty: ours
  bool operator==(const PluginChoice&) const = default;
};

// How pods with one spec.schedulerName are scheduled. The defaults are Kubernetes'.
struct ProfileConfig {
  std::string name = "default-scheduler";
  std::map<std::string, PluginChoice, std::less<>> plugins = {};  // by name; absent: as registered
  std::map<std::string, PluginArgsPtr, std::less<>> args = {};    // by plugin; absent: its defaults
  int percentage_of_nodes_to_score = 0;                           // 0: by the number of nodes

  const PluginArgs* FindArgs(std::string_view plugin) const {
    const auto found = args.find(plugin);
    return found == args.end() ? nullptr : found->second.get();
  }
  // What is set for the plugin, or the defaults. `Args` must be the plugin's.
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
