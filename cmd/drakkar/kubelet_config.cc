#include "cmd/drakkar/kubelet_config.h"

#include "api/codec/yaml_reader.h"
#include "api/meta/quantity.h"
#include "api/meta/time.h"
#include "base/text/text.h"
#include "cmd/drakkar/kubelet_fields.h"
#include "features/gates/feature_gates.h"
#include "features/report.h"
#include "telemetry/log/log.h"

namespace drakkar::cmd {
namespace {

constexpr Logger kLog("node");

// Removes the kubelet's gates that this node does not have, and records them.
std::string KnownGates(std::string_view gates, std::vector<std::string>& unknown) {
  std::vector<std::string_view> known;
  for (std::string_view gate : Split(gates, ',')) {
    if (gate.empty()) continue;
    const std::string_view name = gate.substr(0, gate.find('='));
    if (FindGate(name)) {
      known.push_back(gate);
    } else {
      unknown.emplace_back(name);
    }
  }
  return Join(known, ",");
}

std::map<std::string, std::string> MapOf(api::Value map) {
  std::map<std::string, std::string> entries;
  for (const api::MemberView each : map.members()) {
    entries[std::string(each.name)] = std::string(each.value.str());
  }
  return entries;
}

Result<node::EvictionSettings> ReadEviction(api::Value root) {
  node::EvictionSettings settings;
  settings.hard = node::EvictionSettings::DefaultHard();
  if (root["evictionHard"].size() > 0) {
    const auto given = MapOf(root["evictionHard"]);
    // As in a kubelet: one threshold replaces all defaults, unless they are to be merged.
    if (!root.Entry("mergeDefaultEvictionSettings").boolean()) settings.hard.clear();
    for (const auto& [signal, value] : given) settings.hard[signal] = value;
  }
  settings.soft = MapOf(root["evictionSoft"]);
  settings.soft_grace_period = MapOf(root["evictionSoftGracePeriod"]);
  settings.minimum_reclaim = MapOf(root["evictionMinimumReclaim"]);
  if (const std::string_view period = root["evictionPressureTransitionPeriod"].str();
      !period.empty()) {
    ASSIGN_OR_RETURN(settings.transition_period, api::ParseDuration(period));
    // A kubelet's default for zero, too.
    if (settings.transition_period == Duration::zero()) {
      settings.transition_period = node::EvictionSettings().transition_period;
    }
  }
  settings.max_pod_grace_seconds = root["evictionMaxPodGracePeriod"].integer();
  RETURN_IF_ERROR(node::ParseThresholds(settings));
  return settings;
}

Result<std::vector<node::ShutdownPeriod>> ReadShutdownPeriods(api::Value root) {
  const auto duration = [&](api::FieldName name) -> Result<Duration> {
    const std::string_view text = root[name].str();
    if (text.empty()) return Duration::zero();
    ASSIGN_OR_RETURN(const Duration value, api::ParseDuration(text));
    if (value < Duration::zero() || (value > Duration::zero() && value < std::chrono::seconds(1))) {
      return InvalidArgument(StrCat(std::string_view(name), ": must be 0, or at least 1s"));
    }
    return value;
  };
  ASSIGN_OR_RETURN(const Duration total, duration("shutdownGracePeriod"));
  ASSIGN_OR_RETURN(const Duration critical, duration("shutdownGracePeriodCriticalPods"));
  if (critical > total) {
    return InvalidArgument(
        "shutdownGracePeriodCriticalPods: is part of shutdownGracePeriod and must not exceed it");
  }
  const api::Value list = root["shutdownGracePeriodByPodPriority"];
  if (list.size() == 0) return node::PeriodsOf(total, critical);
  if (total > Duration::zero()) {
    return InvalidArgument(
        "shutdownGracePeriodByPodPriority cannot be combined with "
        "shutdownGracePeriod");
  }
  std::map<std::int64_t, std::int64_t> seconds;
  for (api::Value each : list.elements()) {
    const std::int64_t given = each["shutdownGracePeriodSeconds"].integer();
    if (given < 0) {
      return InvalidArgument("shutdownGracePeriodSeconds: must not be negative");
    }
    if (!seconds.emplace(each["priority"].integer(), given).second) {
      return InvalidArgument("shutdownGracePeriodByPodPriority: lists a priority twice");
    }
  }
  std::vector<node::ShutdownPeriod> periods;
  for (const auto& [priority, given] : seconds) periods.push_back({priority, given});
  return periods;
}

}  // namespace

node::EvictionSettings EvictionWithoutConfiguration() {
  node::EvictionSettings settings;
  settings.hard = node::EvictionSettings::DefaultHard();
  settings.hard["nodefs.available"] = "5%";
  settings.hard["imagefs.available"] = "5%";
  return settings;
}

std::vector<cli::Flag> KubeletConfigFlags() {
  return {{.name = "config",
           .help = "KubeletConfiguration file. The log lists its settings that have no effect "
                   "here.",
           .placeholder = "FILE"},
          {.name = "runtime-features",
           .help = "Features of the container runtime, verified when the node starts: "
                   "UserNamespacesHostNetwork, MountOptions.",
           .placeholder = "NAMES"}};
}

Result<KubeletSettings> ReadKubeletSettings(const cli::Arguments& arguments, FileSystem& files) {
  KubeletSettings settings;
  ASSIGN_OR_RETURN(settings.features.runtime_features,
                   features::ReadRuntimeFeatures(arguments.Text("runtime-features")));
  const std::string& path = arguments.Text("config");
  settings.eviction = EvictionWithoutConfiguration();
  if (path.empty()) return settings;
  ASSIGN_OR_RETURN(const std::string text, files.ReadFile(path));
  Result<std::vector<api::TreePtr>> documents = api::ParseYaml(text);
  if (!documents.ok()) return std::move(documents).error().Prefixed(path);
  if (documents->size() != 1 || !documents->front()->root().is_object()) {
    return InvalidArgument(StrCat(path, ": expected exactly one KubeletConfiguration"));
  }
  const api::Value root = documents->front()->root();
  Result<std::vector<std::string>> ignored = CheckKubeletFields(root, text);
  if (!ignored.ok()) return std::move(ignored).error().Prefixed(path);
  Result<features::KubeletSettings> read = features::ReadKubeletConfiguration(root);
  if (!read.ok()) return std::move(read).error().Prefixed(path);
  settings.feature_gates = std::move(read->feature_gates);
  settings.features.static_configuration = std::move(read->static_configuration);
  settings.pod_pids_limit = root["podPidsLimit"].optional_integer();
  settings.seccomp_default = root["seccompDefault"].boolean();
  settings.runtime_endpoint = std::string(root["containerRuntimeEndpoint"].str());
  for (api::Value address : root["clusterDNS"].elements()) {
    settings.cluster_dns.emplace_back(address.str());
  }
  settings.cluster_domain = root["clusterDomain"].str();
  node::ImageCollection& images = settings.image_collection;
  images.high_percent =
      static_cast<int>(root["imageGCHighThresholdPercent"].integer(images.high_percent));
  images.low_percent =
      static_cast<int>(root["imageGCLowThresholdPercent"].integer(images.low_percent));
  if (images.low_percent < 0 || images.high_percent > 100 ||
      images.low_percent >= images.high_percent) {
    return InvalidArgument(StrCat(path,
                                  ": imageGCLowThresholdPercent must be below "
                                  "imageGCHighThresholdPercent, and both between 0 and 100"));
  }
  if (const std::string_view age = root["imageMinimumGCAge"].str(); !age.empty()) {
    ASSIGN_OR_RETURN(images.min_age, api::ParseDuration(age));
  }
  if (const std::string_view age = root["imageMaximumGCAge"].str(); !age.empty()) {
    ASSIGN_OR_RETURN(images.max_age, api::ParseDuration(age));
    if (images.max_age != Duration::zero() && images.max_age <= images.min_age) {
      return InvalidArgument(
          StrCat(path, ": imageMaximumGCAge must be greater than imageMinimumGCAge, or 0"));
    }
  }
  settings.resolv_conf = root["resolvConf"].str();
  auto eviction = ReadEviction(root);
  if (!eviction.ok()) return std::move(eviction).error().Prefixed(path);
  settings.eviction = *std::move(eviction);
  auto resources = ReadResourceSettings(root);
  if (!resources.ok()) return std::move(resources).error().Prefixed(path);
  settings.resources = *std::move(resources);
  auto agent = ReadAgentSettings(root);
  if (!agent.ok()) return std::move(agent).error().Prefixed(path);
  settings.agent = *std::move(agent);
  std::vector<std::string> unsafe;
  for (api::Value each : root["allowedUnsafeSysctls"].elements()) unsafe.emplace_back(each.str());
  auto sysctls = node::AllowedSysctls::Make(unsafe);
  if (!sysctls.ok()) {
    return std::move(sysctls).error().Prefixed(StrCat(path, ": allowedUnsafeSysctls"));
  }
  settings.sysctls = *std::move(sysctls);
  auto periods = ReadShutdownPeriods(root);
  if (!periods.ok()) return std::move(periods).error().Prefixed(path);
  settings.shutdown_periods = *std::move(periods);
  settings.max_pods = root["maxPods"].integer();
  if (settings.max_pods < 0) return InvalidArgument(StrCat(path, ": maxPods must not be negative"));
  std::vector<std::string> unknown;
  settings.feature_gates = KnownGates(settings.feature_gates, unknown);
  // Log all of them once: a user may rely on any of these.
  if (!ignored->empty() || !unknown.empty()) {
    kLog.Warning("ignored settings in the configuration file that have no effect on this node",
                 {{"file", path},
                  {"settings", Join(*ignored, ", ")},
                  {"featureGates", Join(unknown, ", ")}});
  }
  return settings;
}

}  // namespace drakkar::cmd
