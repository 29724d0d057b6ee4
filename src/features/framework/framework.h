#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "features/framework/registry.h"

namespace drakkar::features {

// The features that a configuration declares. A feature whose discovery fails is left out; the
// caller logs the problems.
struct Discovery {
  FeatureSet features;
  std::vector<std::string> names;     // with aliases, sorted, without duplicates
  std::vector<std::string> problems;  // "feature X: reason"
};

struct MatchResult {
  bool is_match = false;
  std::vector<std::string> unsatisfied;  // names without aliases, ascending
};

// A feature that a pod requires, and the field that causes it.
struct Need {
  std::string feature;
  std::string field;
  bool operator==(const Need&) const = default;
};

// The operations of KEP-5328 over one registry, with the same answers in scheduler, node, API
// server and autoscaler. Immutable, cheap to copy, thread-safe.
//
// `target` is the (emulated) version of the calling component. Above a feature's last version every
// node is assumed to have it, so it is neither required nor declared.
class Framework {
 public:
  explicit Framework(std::shared_ptr<const Registry> registry) : registry_(std::move(registry)) {}

  const Registry& registry() const { return *registry_; }

  Discovery DiscoverNodeFeatures(const NodeConfiguration& configuration) const;

  Result<FeatureSet> InferForPodScheduling(const PodInfo& pod,
                                           const std::optional<Version>& target) const;
  Result<FeatureSet> InferForPodUpdate(const PodInfo& old_pod, const PodInfo& new_pod,
                                       const std::optional<Version>& target) const;
  // InferForPodScheduling with the reasons, sorted by feature.
  Result<std::vector<Need>> ExplainPodScheduling(const PodInfo& pod,
                                                 const std::optional<Version>& target) const;

  // Maps the node's list on each call. To test many pods, keep the result of MapNodeFeatures and
  // call `required.IsSubsetOf(node_features)`.
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
