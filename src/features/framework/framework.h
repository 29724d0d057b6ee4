#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "features/framework/registry.h"

namespace drakkar::features {

// What a configuration leads to. An error while a feature was looked for leaves it out; the caller
// logs the problems.
struct Discovery {
  FeatureSet features;
  std::vector<std::string> names;     // with aliases, ascending, each once
  std::vector<std::string> problems;  // "feature X: why"
};

struct MatchResult {
  bool is_match = false;
  std::vector<std::string> unsatisfied;  // names without aliases, ascending
};

// A feature that a pod needs, and the field that says so.
struct Need {
  std::string feature;
  std::string field;
  bool operator==(const Need&) const = default;
};

// The calls of KEP-5328 over one registry: the same answers in scheduler, node, API server and
// autoscaler. Immutable and cheap to copy, safe on any thread.
//
// `target` is the version of the component that asks, the emulated one. Above a feature's last
// version every node is assumed to have the feature: it is neither needed nor declared.
class Framework {
 public:
  explicit Framework(std::shared_ptr<const Registry> registry) : registry_(std::move(registry)) {}

  const Registry& registry() const { return *registry_; }

  Discovery DiscoverNodeFeatures(const NodeConfiguration& configuration) const;

  Result<FeatureSet> InferForPodScheduling(const PodInfo& pod,
                                           const std::optional<Version>& target) const;
  Result<FeatureSet> InferForPodUpdate(const PodInfo& old_pod, const PodInfo& new_pod,
                                       const std::optional<Version>& target) const;
  // InferForPodScheduling with reasons, ascending by feature.
  Result<std::vector<Need>> ExplainPodScheduling(const PodInfo& pod,
                                                 const std::optional<Version>& target) const;

  // The node's list is mapped on each call; whoever tests many pods keeps MapNodeFeatures' answer
  // and calls `required.IsSubsetOf(node_features)`.
  Result<MatchResult> MatchNode(const FeatureSet& required, api::Value node) const;
  Result<MatchResult> MatchNodeFeatureSet(const FeatureSet& required,
                                          const FeatureSet& node_features) const;
  FeatureSet MapNodeFeatures(api::Value node) const { return registry_->MapNodeFeatures(node); }

  // By name or alias.
  Result<FeatureRequirements> GetFeatureRequirements(std::string_view name) const;

 private:
  std::shared_ptr<const Registry> registry_;
};

}  // namespace drakkar::features
