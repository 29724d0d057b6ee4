#include "node/admission/node_features.h"

#include "base/text/text.h"
#include "features/catalog/catalog.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.features");

features::RuntimeFeatures InBoth(const features::RuntimeFeatures& stated,
                                 const features::RuntimeFeatures& offered) {
  const auto tell = [](std::string_view name) {
    kLog.Error("runtime lacks a feature that the configuration declares",
               {{"runtimeFeature", std::string(name)}});
  };
  features::RuntimeFeatures both;
  both.mount_options = stated.mount_options && offered.mount_options;
  if (stated.mount_options && !offered.mount_options) tell("MountOptions");
  both.user_namespaces_host_network =
      stated.user_namespaces_host_network && offered.user_namespaces_host_network;
  if (stated.user_namespaces_host_network && !offered.user_namespaces_host_network) {
    tell("UserNamespacesHostNetwork");
  }
  return both;
}

PodVerdict Rejected(std::string message) {
  return {std::string(features::kPodFeatureUnsupported), std::move(message)};
}

}  // namespace

NodeFeatures::NodeFeatures(const NodeFeatureOptions& options, const FeatureGates& gates,
                           const features::RuntimeFeatures& offered)
    : framework_(options.framework != nullptr ? *options.framework : features::DefaultFramework()),
      gates_(gates),
      checks_(gates.Enabled(Gate::kNodeDeclaredFeatures)),
      sees_skips_(gates.Known(Gate::kDRAOptionalNodePreparation)),
      version_(features::VersionOf(gates.emulated())) {
  declaration_.features = framework_.registry().NewSet();
  if (!checks_) return;
  declaration_ = features::DeclareForNode(
      framework_,
      {.version = version_,
       .gate_enabled = options.gate_enabled ? options.gate_enabled : features::LookupIn(gates),
       .static_configuration = options.static_configuration,
       .runtime_features = InBoth(options.runtime_features, offered)},
      options.implemented.empty() ? features::ImplementedByOurNode() : options.implemented);
  for (const std::string& problem : declaration_.problems) {
    kLog.Error("could not declare a feature", {{"err", problem}});
  }
  kLog.Info("declared features", {{"features", Join(declaration_.names, ", ")}});
}

std::optional<PodVerdict> NodeFeatures::Check(api::Value pod,
                                              const std::vector<api::ObjectPtr>& claims) const {
  if (!gates_.Known(Gate::kNodeDeclaredFeatures)) return CheckOldRelease(pod);
  if (!checks_) return std::nullopt;
  features::PodInfo info = features::PodInfoOf(pod);
  for (const api::ObjectPtr& claim : claims) info.claims.push_back(claim->root());
  const Result<features::FeatureSet> required = framework_.InferForPodScheduling(info, version_);
  if (!required.ok()) {
    return Rejected(
        StrCat("Failed to infer pod's feature requirements: ", required.error().message));
  }
  const auto match = framework_.MatchNodeFeatureSet(*required, declaration_.features);
  if (!match.ok()) {
    return Rejected(StrCat("Failed to match pod's feature requirements against the node: ",
                           match.error().message));
  }
  if (match->is_match) return std::nullopt;
  return Rejected(features::PodRejectedMessage(match->unsatisfied));
}

std::optional<PodVerdict> NodeFeatures::CheckOldRelease(api::Value pod) const {
  const auto needs = framework_.ExplainPodScheduling(features::PodInfoOf(pod), version_);
  if (!needs.ok()) return std::nullopt;
  std::vector<std::string> missing;
  for (const features::Need& need : *needs) {
    const auto requirements = framework_.GetFeatureRequirements(need.feature);
    for (const std::string& name : requirements->enabled_feature_gates) {
      const std::optional<Gate> gate = FindGate(name);
      if (!gate || gates_.Known(*gate)) continue;
      missing.push_back(need.feature);
      break;
    }
  }
  if (missing.empty()) return std::nullopt;
  return Rejected(features::PodRejectedMessage(missing));
}

std::optional<std::string> NodeFeatures::CheckUpdate(api::Value before, api::Value after) const {
  if (!checks_) return std::nullopt;
  const auto required = framework_.InferForPodUpdate(features::PodInfoOf(before),
                                                     features::PodInfoOf(after), version_);
  if (!required.ok()) return required.error().message;
  const auto match = framework_.MatchNodeFeatureSet(*required, declaration_.features);
  if (!match.ok() || match->is_match) return std::nullopt;
  return features::PodRejectedMessage(match->unsatisfied);
}

}  // namespace drakkar::node
