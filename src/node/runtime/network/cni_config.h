#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/env/file_system.h"
#include "base/result/result.h"

namespace drakkar::node {

// Network configuration as the Container Network Interface defines it, versions 0.3.0 to 1.1.0. It
// is written by administrators and installers, so it is checked before any plugin sees it.
constexpr std::size_t kMaxCniFileBytes = 1u << 20;
constexpr std::size_t kMaxCniPlugins = 32;

struct CniVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;
  auto operator<=>(const CniVersion&) const = default;
};

struct CniPlugin {
  std::string type;  // the name of the program
  std::set<std::string> capabilities;
  // Our own key onlyWithCapabilities: the plugin is skipped for pods that use none of its
  // capabilities. Saves a process per pod.
  bool only_with_capabilities = false;
  api::TreePtr json;
};

struct CniList {
  std::string name;
  std::string version;  // as in the file
  CniVersion parsed_version;
  bool disable_check = false;
  bool disable_gc = false;
  std::vector<CniPlugin> plugins;
  std::string text;  // the whole list as JSON
};

// A list of plugins (*.conflist), or a single plugin (*.conf, *.json), which becomes a list of one.
Result<CniList> ParseCniList(std::string_view text, bool is_list);

// The configuration of the directory: the first file by name, as containerd chooses it. kNotFound
// if there is none. An unusable file is an error; the next one is not tried, because pods would
// silently get another network.
Result<CniList> LoadCniList(FileSystem& files, const std::string& directory);

// The values for `capabilities`, each as JSON: {"portMappings": "[...]"}.
using CapabilityArguments = std::map<std::string, std::string>;

// Whether to run the plugin for a pod with these arguments.
bool IsNeeded(const CniPlugin& plugin, const CapabilityArguments& arguments);

struct CniInput {
  const CniList& list;
  const CniPlugin& plugin;
  const CapabilityArguments& arguments;
  std::string previous_result;                   // JSON; may be empty
  std::optional<std::string> valid_attachments;  // JSON, only for GC
};
// What the plugin reads from its standard input.
Result<std::string> MakePluginInput(const CniInput& input);

}  // namespace drakkar::node
