#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "features/framework/framework.h"

namespace drakkar::features {

// What a node that implements `implemented` (names or aliases) declares with this configuration:
// valid names and aliases, sorted, without duplicates. `problems` are for the log: discovery
// errors, unknown and invalid names.
struct Declaration {
  FeatureSet features;
  std::vector<std::string> names;
  std::vector<std::string> problems;
};
Declaration DeclareForNode(const Framework& framework, const NodeConfiguration& configuration,
                           std::span<const std::string_view> implemented);

// What our node agent implements; it declares nothing else, whatever the gates say. Add a name
// together with its implementation.
std::span<const std::string_view> ImplementedByOurNode();

// The declared names that follow from the configuration.
std::vector<std::string> DeclaredNames(const Framework& framework,
                                       const NodeConfiguration& configuration);

// Whether a node that changed from `before` to `after` now satisfies `required` but did not before:
// the only node change that can help a waiting pod. All three are sets of one registry.
inline bool ComesToSatisfy(const FeatureSet& required, const FeatureSet& before,
                           const FeatureSet& after) {
  return required.IsSubsetOf(after) && !required.IsSubsetOf(before);
}

// Why a node rejected a pod (event and pod status), and the label of the metric.
inline constexpr std::string_view kPodFeatureUnsupported = "PodFeatureUnsupported";

// Messages about missing features.
std::string UnmatchedNodeMessage(const std::vector<std::string>& missing);
// Node: "Pod requires node features that are not available: A, B".
std::string PodRejectedMessage(const std::vector<std::string>& missing);
// API server: `pod update requires features A, B which are not available on node "n"`.
std::string UpdateRefusedMessage(const std::vector<std::string>& missing, std::string_view node);

}  // namespace drakkar::features
