#include "answers/why/gates.h"

#include <algorithm>

#include "base/text/text.h"
#include "features/catalog/catalog.h"

namespace drakkar::answers {
namespace {

constexpr std::string_view kSkipFeature = "DraOptionalNodePreparation";
// The wording of the scheduler and the API server (scheduler/plugins/dynamic_resources/pre_bind.cc,
// apiserver/validation/resource_rules.cc).
constexpr std::string_view kNotStored = "the API server did not store ";
constexpr std::string_view kForbidden = "may not be set while the feature gate ";

bool Contains(const std::vector<Gate>& gates, Gate gate) {
  return std::find(gates.begin(), gates.end(), gate) != gates.end();
}

// Turns on `gate` and what it needs, dependencies first. False if that is not possible.
bool Collect(Gate gate, const FeatureGates& gates, std::vector<Gate>& on) {
  if (gates.Enabled(gate) || Contains(on, gate)) return true;
  const GateFacts facts = FactsOf(gate, gates.emulated());
  if (!facts.is_known || facts.is_locked) return false;
  for (const std::string_view needed : facts.needs) {
    if (!Collect(*FindGate(needed), gates, on)) return false;
  }
  on.push_back(gate);
  return true;
}

bool RefusesForSkips(const allocator::Explanation& explanation) {
  for (const allocator::ClaimExplanation& claim : explanation.claims) {
    for (const allocator::RequestExplanation& request : claim.requests) {
      for (const allocator::Refusal& refusal : request.refusals) {
        if (refusal.rule == allocator::Rule::kSkipUndeclared) return true;
      }
    }
  }
  return false;
}

std::optional<ReleaseVersion> ReleaseOf(const api::Object& node) {
  const Result<features::Version> version =
      features::ParseVersion(node["status"]["nodeInfo"]["kubeletVersion"].str());
  if (!version.ok()) return std::nullopt;
  return ReleaseVersion{static_cast<int>(version->major), static_cast<int>(version->minor)};
}

// The first release that has the gate, or our oldest known release if the gate is older.
ReleaseVersion FirstRelease(Gate gate) {
  ReleaseVersion release = kOurVersion;
  while (release.minor > 0 && FactsOf(gate, {release.major, release.minor - 1}).is_known) {
    --release.minor;
  }
  return release;
}

void AddOnce(std::vector<std::string>& list, std::string text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

std::string AndJoin(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += StrCat(i == 0 ? "" : i + 1 == names.size() ? " and " : ", ", names[i]);
  }
  return text;
}

}  // namespace

std::vector<std::string> FindMissingFeatures(const RefusedOn& refused, ReleaseVersion scheduler) {
  const features::Framework& framework = features::DefaultFramework();
  features::PodInfo info = features::PodInfoOf(refused.pod.root());
  for (const api::ObjectPtr& claim : refused.claims) info.claims.push_back(claim->root());
  std::vector<std::string> missing;
  const auto required = framework.InferForPodScheduling(info, features::VersionOf(scheduler));
  if (required.ok()) {
    if (auto match = framework.MatchNode(*required, refused.node.root()); match.ok()) {
      missing = std::move(match->unsatisfied);
    }
  }
  if (refused.devices != nullptr && RefusesForSkips(*refused.devices)) {
    AddOnce(missing, std::string(kSkipFeature));
  }
  return missing;
}

Help MakeNodeHelp(const api::Object& node, const std::vector<std::string>& features) {
  Help help;
  help.kind = Help::Kind::kGate;
  help.component = Help::Component::kNode;
  help.node = node.name();
  const std::optional<ReleaseVersion> release = ReleaseOf(node);
  std::optional<ReleaseVersion> newest;  // of the gates that the node's release lacks
  const auto add = [&](std::string_view name) {
    AddOnce(help.gates, std::string(name));
    const std::optional<Gate> gate = FindGate(name);
    if (!gate || !release || FactsOf(*gate, *release).is_known) return;
    const ReleaseVersion first = FirstRelease(*gate);
    if (!newest || *newest < first) newest = first;
  };
  // If a node declares nothing at all, either the framework is off or no other gate is on.
  if (node["status"]["declaredFeatures"].empty()) add(GateName(Gate::kNodeDeclaredFeatures));
  for (const std::string& feature : features) {
    const auto requirements = features::DefaultFramework().GetFeatureRequirements(feature);
    if (!requirements.ok()) continue;
    for (const std::string& gate : requirements->enabled_feature_gates) add(gate);
    for (const auto& [name, value] : requirements->static_configuration) {
      AddOnce(help.settings, StrCat(name, "=", value));
    }
    if (requirements->runtime_features.mount_options) {
      AddOnce(help.settings, "a container runtime with mount options");
    }
    if (requirements->runtime_features.user_namespaces_host_network) {
      AddOnce(help.settings, "a container runtime with user namespaces on the host network");
    }
  }
  if (newest) help.release = newest->ToString();
  return help;
}

std::vector<std::vector<Gate>> ListGatesToTry(const FeatureGates& gates) {
  std::vector<std::vector<Gate>> sets;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Gate::kCount); ++i) {
    const auto gate = static_cast<Gate>(i);
    std::vector<Gate> on;
    if (!gates.Enabled(gate) && Collect(gate, gates, on)) sets.push_back(std::move(on));
  }
  std::stable_sort(sets.begin(), sets.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return sets;
}

FeatureGates TurnOn(FeatureGates gates, const std::vector<Gate>& on) {
  for (const Gate gate : on) gates = gates.With(gate, true);
  return gates;
}

Help MakeSchedulerHelp(const std::vector<Gate>& gates) {
  Help help;
  help.kind = Help::Kind::kGate;
  help.component = Help::Component::kScheduler;
  for (const Gate gate : gates) help.gates.emplace_back(GateName(gate));
  return help;
}

std::optional<Help> FindNodeHelp(const RefusedOn& refused, ReleaseVersion scheduler,
                                 const WhatIf& what_if) {
  const std::vector<std::string> missing = FindMissingFeatures(refused, scheduler);
  if (missing.empty()) return std::nullopt;
  const features::Registry& registry = features::DefaultFramework().registry();
  if (!what_if.FitsDeclaring(registry.DeclaredNames(registry.MapKnown(missing)))) {
    return std::nullopt;
  }
  return MakeNodeHelp(refused.node, missing);
}

std::optional<Help> FindSchedulerHelp(const std::string& node, const FeatureGates& gates,
                                      const WhatIf& what_if) {
  for (const std::vector<Gate>& on : ListGatesToTry(gates)) {
    if (!what_if.FitsWithGates(TurnOn(gates, on))) continue;
    Help help = MakeSchedulerHelp(on);
    help.node = node;
    return help;
  }
  return std::nullopt;
}

std::optional<Help> FindServerHelp(std::string_view message) {
  if (message.find(kNotStored) == std::string_view::npos &&
      message.find(kForbidden) == std::string_view::npos) {
    return std::nullopt;
  }
  constexpr std::string_view kGate = "feature gate ";
  const std::size_t at = message.find(kGate);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = message.substr(at + kGate.size());
  const std::optional<Gate> gate = FindGate(rest.substr(0, rest.find(' ')));
  if (!gate) return std::nullopt;
  Help help;
  help.kind = Help::Kind::kGate;
  help.component = Help::Component::kApiServer;
  help.gates.emplace_back(GateName(*gate));
  return help;
}

std::string GateText(const Help& help) {
  std::vector<std::string> flags;
  for (const std::string& gate : help.gates) flags.push_back(gate + "=true");
  std::string text =
      StrCat("turn on feature ", help.gates.size() == 1 ? "gate " : "gates ", AndJoin(help.gates));
  std::string flag = StrCat("--feature-gates=", Join(flags, ","));
  switch (help.component) {
    case Help::Component::kScheduler:
      return StrCat(text, " in the scheduler (", flag, ")");
    case Help::Component::kApiServer:
      return StrCat(text, " in the API server (", flag, ")");
    case Help::Component::kNode:
      break;
  }
  const std::string node = help.node.empty() ? std::string("the node") : "node " + help.node;
  text += StrCat(" on ", node, " (", flag, ", or featureGates in its configuration)");
  if (!help.settings.empty()) text += StrCat(", with ", AndJoin(help.settings));
  if (!help.release.empty()) {
    text = StrCat("upgrade ", node, " to ", help.release, " or later, and ", text);
  }
  return text;
}

}  // namespace drakkar::answers
