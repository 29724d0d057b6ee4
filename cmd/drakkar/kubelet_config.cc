#include "cmd/drakkar/kubelet_config.h"

#include <set>

#include "api/codec/yaml_reader.h"
#include "base/text/text.h"
#include "features/report.h"
#include "telemetry/log/log.h"

namespace drakkar::cmd {
namespace {

constexpr Logger kLog("node");

}  // namespace

std::vector<cli::Flag> KubeletConfigFlags() {
  return {
      {.name = "config",
       .help = "A KubeletConfiguration file: its feature gates, and the settings that decide what "
               "the node declares.",
       .placeholder = "FILE"},
      {.name = "runtime-features",
       .help = "What the container runtime is known to have, checked when the node starts: "
               "UserNamespacesHostNetwork, MountOptions.",
       .placeholder = "NAMES"}};
}

Result<KubeletSettings> ReadKubeletSettings(const cli::Arguments& arguments, FileSystem& files) {
  KubeletSettings settings;
  ASSIGN_OR_RETURN(settings.features.runtime_features,
                   features::ReadRuntimeFeatures(arguments.Text("runtime-features")));
  const std::string& path = arguments.Text("config");
  if (path.empty()) return settings;
  ASSIGN_OR_RETURN(const std::string text, files.ReadFile(path));
  Result<std::vector<api::TreePtr>> documents = api::ParseYaml(text);
  if (!documents.ok()) return std::move(documents).error().Prefixed(path);
  if (documents->size() != 1 || !documents->front()->root().is_object()) {
    return InvalidArgument(StrCat(path, ": one KubeletConfiguration is needed"));
  }
  const api::Value root = documents->front()->root();
  Result<features::KubeletSettings> read = features::ReadKubeletConfiguration(root);
  if (!read.ok()) return std::move(read).error().Prefixed(path);
  settings.feature_gates = std::move(read->feature_gates);
  settings.features.static_configuration = std::move(read->static_configuration);
  std::vector<std::string> ignored;
  const std::set<std::string_view> known = {"apiVersion", "kind", "featureGates"};
  for (const api::MemberView member : root.members()) {
    if (!known.contains(member.name)) ignored.emplace_back(member.name);
  }
  if (!ignored.empty()) {
    kLog.Warning("settings of the configuration file that this node does not act on",
                 {{"file", path}, {"settings", Join(ignored, ", ")}});
  }
  return settings;
}

}  // namespace drakkar::cmd
