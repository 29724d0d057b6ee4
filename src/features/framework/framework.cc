#include "features/framework/framework.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::features {
namespace {

bool IsBeyond(const Version& version, const Feature& feature) {
  return version.Compare(feature.MaxVersion().value_or(version)) > 0;
}

bool AllGatesOn(const Feature& feature, const NodeConfiguration& configuration) {
  const std::vector<std::string> gates = feature.Requirements().enabled_feature_gates;
  return configuration.gate_enabled &&
         std::all_of(gates.begin(), gates.end(),
                     [&](const std::string& gate) { return configuration.gate_enabled(gate); });
}

// Calls `found(index, field)` for each feature that `infer(feature)` requires.
template <typename Infer, typename Found>
Result<void> InferAll(const Registry& registry, const std::optional<Version>& target, Infer infer,
                      Found found) {
  if (!target) return InvalidArgument("target version cannot be nil");
  for (std::size_t index = 0; index < registry.size(); ++index) {
    const Feature& feature = registry.feature(index);
    if (IsBeyond(*target, feature)) continue;
    const NeededBecauseOf needed = infer(feature);
    if (needed.error()) return needed.error()->Prefixed(StrCat("feature ", feature.Name()));
    if (needed) found(index, *needed);
  }
  return Ok();
}

}  // namespace

Discovery Framework::DiscoverNodeFeatures(const NodeConfiguration& configuration) const {
  Discovery discovery{.features = registry_->NewSet(), .names = {}, .problems = {}};
  for (std::size_t index = 0; index < registry_->size(); ++index) {
    const Feature& feature = registry_->feature(index);
    // Version 0.0.0, if none is known, is beyond the last version of no feature.
    if (IsBeyond(configuration.version.value_or(Version()), feature)) continue;
    if (!AllGatesOn(feature, configuration)) continue;
    const Result<bool> found = feature.Discover(configuration);
    if (!found.ok()) {
      discovery.problems.push_back(StrCat("feature ", feature.Name(), ": ", found.error().message));
    } else if (*found) {
      discovery.features.Set(index);
    }
  }
  discovery.names = registry_->DeclaredNames(discovery.features);
  return discovery;
}

Result<FeatureSet> Framework::InferForPodScheduling(const PodInfo& pod,
                                                    const std::optional<Version>& target) const {
  FeatureSet needed = registry_->NewSet();
  RETURN_IF_ERROR(InferAll(
      *registry_, target, [&](const Feature& feature) { return feature.InferForScheduling(pod); },
      [&](std::size_t index, const std::string&) { needed.Set(index); }));
  return needed;
}

Result<FeatureSet> Framework::InferForPodUpdate(const PodInfo& old_pod, const PodInfo& new_pod,
                                                const std::optional<Version>& target) const {
  FeatureSet needed = registry_->NewSet();
  RETURN_IF_ERROR(InferAll(
      *registry_, target,
      [&](const Feature& feature) { return feature.InferForUpdate(old_pod, new_pod); },
      [&](std::size_t index, const std::string&) { needed.Set(index); }));
  return needed;
}

Result<std::vector<Need>> Framework::ExplainPodScheduling(
    const PodInfo& pod, const std::optional<Version>& target) const {
  std::vector<Need> needs;
  RETURN_IF_ERROR(InferAll(
      *registry_, target, [&](const Feature& feature) { return feature.InferForScheduling(pod); },
      [&](std::size_t index, std::string field) {
        needs.push_back({std::string(registry_->feature(index).Name()), std::move(field)});
      }));
  return needs;
}

Result<MatchResult> Framework::MatchNode(const FeatureSet& required, api::Value node) const {
  if (!node.has_value()) return InvalidArgument("node cannot be nil");
  return MatchNodeFeatureSet(required, MapNodeFeatures(node));
}

Result<MatchResult> Framework::MatchNodeFeatureSet(const FeatureSet& required,
                                                   const FeatureSet& node_features) const {
  if (required.IsEmpty()) return MatchResult{.is_match = true, .unsatisfied = {}};
  ASSIGN_OR_RETURN(const bool is_subset, required.CheckedIsSubsetOf(node_features));
  if (is_subset) return MatchResult{.is_match = true, .unsatisfied = {}};
  ASSIGN_OR_RETURN(const FeatureSet missing, required.Difference(node_features));
  ASSIGN_OR_RETURN(std::vector<std::string> names, registry_->Names(missing));
  return MatchResult{.is_match = false, .unsatisfied = std::move(names)};
}

Result<FeatureRequirements> Framework::GetFeatureRequirements(std::string_view name) const {
  const std::optional<std::size_t> index = registry_->FindIndex(name);
  if (!index) return NotFound(StrCat("feature '", name, "' not registered"));
  return registry_->feature(*index).Requirements();
}

}  // namespace drakkar::features
