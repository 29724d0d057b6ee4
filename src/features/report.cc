#include "features/report.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "api/tree/draft.h"
#include "base/text/text.h"
#include "features/declared.h"

namespace drakkar::features {
namespace {

// Settings of a KubeletConfiguration that features may depend on, with the kubelet's defaults.
struct StaticSetting {
  api::FieldName field;
  std::string_view key;
  std::string_view fallback;
};
constexpr std::array kStaticSettings = {
    StaticSetting{"cpuManagerPolicy", "CPUManagerPolicy", "none"},
};

struct RuntimeSetting {
  std::string_view name;
  bool RuntimeFeatures::*member;
};
constexpr std::array kRuntimeSettings = {
    RuntimeSetting{"MountOptions", &RuntimeFeatures::mount_options},
    RuntimeSetting{"UserNamespacesHostNetwork", &RuntimeFeatures::user_namespaces_host_network},
};

std::vector<std::string> RuntimeFeatureNames(const RuntimeFeatures& features) {
  std::vector<std::string> names;
  for (const RuntimeSetting& setting : kRuntimeSettings) {
    if (features.*setting.member) names.emplace_back(setting.name);
  }
  return names;
}

// The gates of the configuration in the format of `--feature-gates`.
Result<std::string> GatesOf(api::Value kubelet_configuration) {
  std::vector<std::string> parts;
  const api::Value gates = kubelet_configuration["featureGates"];
  if (gates.has_value() && !gates.is_object()) {
    return InvalidArgument("featureGates must be a map of names to true or false");
  }
  for (const api::MemberView gate : gates.members()) {
    const std::optional<bool> on = gate.value.optional_boolean();
    if (!on) {
      return InvalidArgument(StrCat("featureGates: ", gate.name, " must be true or false"));
    }
    parts.push_back(StrCat(gate.name, "=", *on ? "true" : "false"));
  }
  return Join(parts, ",");
}

// Gates in our table are checked as on a node; all others are accepted as given.
struct SplitGates {
  std::string known;
  std::map<std::string, bool, std::less<>> others;
};

Result<SplitGates> SplitByKnowledge(std::string_view given) {
  SplitGates split;
  for (std::string_view part : Split(given, ',')) {
    part = Trim(part);
    const std::string_view name = Trim(part.substr(0, part.find('=')));
    // Pass malformed parts on; the checks report what is wrong.
    const bool malformed = part.find('=') == std::string_view::npos || name.empty();
    if (malformed || FindGate(name)) {
      if (!part.empty()) split.known += StrCat(split.known.empty() ? "" : ",", part);
      continue;
    }
    const std::string value = ToLower(Trim(part.substr(part.find('=') + 1)));
    if (value != "true" && value != "false") {
      return InvalidArgument(
          StrCat("feature gate ", name, " must be true or false, not ", Quote(value)));
    }
    split.others[std::string(name)] = value == "true";
  }
  return split;
}

// Many Kubernetes gates have no effect here, and a misspelt gate looks the same.
void NoteUnknownGates(const Framework& framework, const ReadConfiguration& read,
                      std::vector<std::string>& notes) {
  std::set<std::string, std::less<>> decisive;
  for (std::size_t i = 0; i < framework.registry().size(); ++i) {
    for (std::string& gate : framework.registry().feature(i).Requirements().enabled_feature_gates) {
      decisive.insert(std::move(gate));
    }
  }
  for (const std::string& gate : read.unknown_gates) {
    if (decisive.contains(gate)) continue;
    notes.push_back(StrCat("feature gate ", gate, " is unknown; no feature depends on it"));
  }
}

api::Draft ListOf(const std::vector<std::string>& texts) {
  api::Draft list = api::Draft::Array();
  for (const std::string& text : texts) list.Append(text);
  return list;
}

}  // namespace

Result<RuntimeFeatures> ReadRuntimeFeatures(std::string_view text) {
  RuntimeFeatures features;
  for (std::string_view name : Split(text, ',')) {
    name = Trim(name);
    if (name.empty()) continue;
    bool known = false;
    for (const RuntimeSetting& setting : kRuntimeSettings) {
      if (ToLower(name) != ToLower(setting.name)) continue;
      features.*setting.member = true;
      known = true;
    }
    if (!known) {
      return InvalidArgument(StrCat("unknown runtime feature ", Quote(name),
                                    "; must be MountOptions or UserNamespacesHostNetwork"));
    }
  }
  return features;
}

Result<KubeletSettings> ReadKubeletConfiguration(api::Value kubelet) {
  if (kubelet.has_value() &&
      kubelet["kind"].str("KubeletConfiguration") != "KubeletConfiguration") {
    return InvalidArgument(
        StrCat("kind is ", Quote(kubelet["kind"].str()), ", but must be KubeletConfiguration"));
  }
  KubeletSettings settings;
  ASSIGN_OR_RETURN(settings.feature_gates, GatesOf(kubelet));
  for (const StaticSetting& setting : kStaticSettings) {
    const std::string_view value = kubelet[setting.field].str();
    settings.static_configuration[std::string(setting.key)] =
        std::string(value.empty() ? setting.fallback : value);
  }
  return settings;
}

Result<ReadConfiguration> ReadNodeConfiguration(const NodeInput& input) {
  ASSIGN_OR_RETURN(KubeletSettings kubelet, ReadKubeletConfiguration(input.kubelet_configuration));
  ReadConfiguration read;
  ReleaseVersion release = kOurVersion;
  read.configuration.version = VersionOf(kOurVersion);
  if (!input.version.empty()) {
    ASSIGN_OR_RETURN(const Version version, ParseVersion(input.version));
    read.configuration.version = version;
    const auto bounded = [](std::uint64_t number) {
      constexpr std::uint64_t kMost = 10'000;  // newer than any release of ours
      return static_cast<int>(std::min(number, kMost));
    };
    release = {bounded(version.major), bounded(version.minor)};
  }
  if (release > kOurVersion) {
    read.notes.push_back(StrCat("the feature gates of version ", release.ToString(),
                                " are unknown; using the defaults of version ",
                                kOurVersion.ToString()));
    release = kOurVersion;
  }

  ASSIGN_OR_RETURN(SplitGates of_file, SplitByKnowledge(kubelet.feature_gates));
  ASSIGN_OR_RETURN(SplitGates split, SplitByKnowledge(input.feature_gates));
  split.others.insert(of_file.others.begin(), of_file.others.end());
  ASSIGN_OR_RETURN(const FeatureGates gates, FeatureGates::Create({.emulated = release,
                                                                   .overrides = split.known,
                                                                   .file_overrides = of_file.known,
                                                                   .turned_on = {}}));
  for (const auto& [name, on] : split.others) read.unknown_gates.push_back(name);
  read.configuration.gate_enabled = [gates,
                                     others = std::move(split.others)](std::string_view name) {
    if (gates.Enabled(name)) return true;
    const auto found = others.find(name);
    return found != others.end() && found->second;
  };
  read.declares_features = gates.Enabled(Gate::kNodeDeclaredFeatures);
  if (!read.declares_features) {
    read.notes.push_back(
        gates.Known(Gate::kNodeDeclaredFeatures)
            ? "feature gate NodeDeclaredFeatures is off; the node declares nothing"
            : StrCat("version ", release.ToString(),
                     " does not have NodeDeclaredFeatures; the node declares nothing"));
  }

  read.configuration.static_configuration = std::move(kubelet.static_configuration);
  ASSIGN_OR_RETURN(read.configuration.runtime_features,
                   ReadRuntimeFeatures(input.runtime_features));
  return read;
}

Result<DiscoverReport> ReportDiscover(const Framework& framework, const NodeInput& input) {
  const bool is_ours = input.agent == "drakkar";
  if (!is_ours && !input.agent.empty() && input.agent != "kubelet") {
    return InvalidArgument(StrCat("agent must be kubelet or drakkar, not ", Quote(input.agent)));
  }
  ASSIGN_OR_RETURN(ReadConfiguration read, ReadNodeConfiguration(input));
  DiscoverReport report{.declared = {}, .notes = std::move(read.notes)};
  NoteUnknownGates(framework, read, report.notes);
  if (!read.declares_features) return report;
  std::vector<std::string> problems;
  if (is_ours) {
    Declaration declaration = DeclareForNode(framework, read.configuration, ImplementedByOurNode());
    report.declared = std::move(declaration.names);
    problems = std::move(declaration.problems);
  } else {
    Discovery discovery = framework.DiscoverNodeFeatures(read.configuration);
    report.declared = std::move(discovery.names);
    problems = std::move(discovery.problems);
  }
  for (std::string& problem : problems) report.notes.push_back(std::move(problem));
  return report;
}

std::string ToText(const DiscoverReport& report) {
  std::string text;
  for (const std::string& name : report.declared) text += name + "\n";
  return text;
}

api::TreePtr ToTree(const DiscoverReport& report) {
  api::Draft tree = api::Draft::Object();
  tree["declaredFeatures"] = ListOf(report.declared);
  if (!report.notes.empty()) tree["notes"] = ListOf(report.notes);
  return tree.Freeze();
}

Result<RequireReport> ReportRequire(const Framework& framework, api::Value pod,
                                    const std::vector<api::Value>& claims,
                                    std::string_view version) {
  if (!pod["spec"].is_object() || pod["kind"].str("Pod") != "Pod") {
    return InvalidArgument(pod["kind"].str("Pod") != "Pod"
                               ? StrCat("kind is ", Quote(pod["kind"].str()), ", but must be Pod")
                               : std::string("the pod has no spec"));
  }
  Version target = VersionOf(kOurVersion);
  if (!version.empty()) {
    ASSIGN_OR_RETURN(target, ParseVersion(version));
  }
  PodInfo info = PodInfoOf(pod);
  info.claims = claims;
  ASSIGN_OR_RETURN(std::vector<Need> needs, framework.ExplainPodScheduling(info, target));
  return RequireReport{.needs = std::move(needs)};
}

std::string ToText(const RequireReport& report, bool why) {
  std::string text;
  for (const Need& need : report.needs) {
    text += why ? StrCat(need.feature, ": ", need.field, "\n") : need.feature + "\n";
  }
  return text;
}

api::TreePtr ToTree(const RequireReport& report) {
  api::Draft list = api::Draft::Array();
  for (const Need& need : report.needs) {
    api::Draft entry = api::Draft::Object();
    entry["name"] = need.feature;
    entry["field"] = need.field;
    list.Append(std::move(entry));
  }
  api::Draft tree = api::Draft::Object();
  tree["requiredFeatures"] = std::move(list);
  return tree.Freeze();
}

Result<NeedsReport> ReportNeeds(const Framework& framework, std::string_view name) {
  ASSIGN_OR_RETURN(FeatureRequirements requirements, framework.GetFeatureRequirements(name));
  const Registry& registry = framework.registry();
  const Feature& feature = registry.feature(*registry.FindIndex(name));
  const std::optional<Version> last = feature.MaxVersion();
  return NeedsReport{.name = std::string(feature.Name()),
                     .aliases = feature.Aliases(),
                     .requirements = std::move(requirements),
                     .max_version = last ? last->ToString() : std::string()};
}

std::string ToText(const NeedsReport& report) {
  std::string text = StrCat("feature: ", report.name, "\n");
  for (const std::string& alias : report.aliases) text += StrCat("also declared as: ", alias, "\n");
  for (const std::string& gate : report.requirements.enabled_feature_gates) {
    text += StrCat("feature gate: ", gate, "\n");
  }
  for (const auto& [key, value] : report.requirements.static_configuration) {
    text += StrCat("setting: ", key, "=", value, "\n");
  }
  for (const std::string& name : RuntimeFeatureNames(report.requirements.runtime_features)) {
    text += StrCat("runtime feature: ", name, "\n");
  }
  if (!report.max_version.empty()) text += StrCat("up to version: ", report.max_version, "\n");
  return text;
}

api::TreePtr ToTree(const NeedsReport& report) {
  api::Draft tree = api::Draft::Object();
  tree["name"] = report.name;
  if (!report.aliases.empty()) tree["aliases"] = ListOf(report.aliases);
  tree["featureGates"] = ListOf(report.requirements.enabled_feature_gates);
  if (!report.requirements.static_configuration.empty()) {
    api::Draft settings = api::Draft::Object();
    for (const auto& [key, value] : report.requirements.static_configuration)
      settings.Entry(key) = value;
    tree["staticConfiguration"] = std::move(settings);
  }
  const std::vector<std::string> runtime =
      RuntimeFeatureNames(report.requirements.runtime_features);
  if (!runtime.empty()) tree["runtimeFeatures"] = ListOf(runtime);
  if (!report.max_version.empty()) tree["maxVersion"] = report.max_version;
  return tree.Freeze();
}

}  // namespace drakkar::features
