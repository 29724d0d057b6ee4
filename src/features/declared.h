#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "features/framework/framework.h"

namespace drakkar::features {

// What a node that really does `implemented` (names or aliases) declares with this configuration:
// names and aliases, valid, ascending, each once. Problems are for the log: discovery errors, names
// that no feature has, invalid names.
struct Declaration {
  FeatureSet features;
  std::vector<std::string> names;
  std::vector<std::string> problems;
};
Declaration DeclareForNode(const Framework& framework, const NodeConfiguration& configuration,
                           std::span<const std::string_view> implemented);

// The names alone, of everything the configuration leads to.
std::vector<std::string> DeclaredNames(const Framework& framework,
                                       const NodeConfiguration& configuration);

// Why a pod was not admitted by a node (event and pod status), and the label of the metric.
inline constexpr std::string_view kPodFeatureUnsupported = "PodFeatureUnsupported";

// Texts for features that are missing.
// Scheduler: "node(s) did not match node declared features: A, B".
std::string UnmatchedNodeMessage(const std::vector<std::string>& missing);
// Node: "Pod requires node features that are not available: A, B".
std::string PodRejectedMessage(const std::vector<std::string>& missing);
// API server: `pod update requires features A, B which are not available on node "n"`.
std::string UpdateRefusedMessage(const std::vector<std::string>& missing, std::string_view node);

}  // namespace drakkar::features
