#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "features/declared.h"
#include "features/framework/framework.h"
#include "node/pods/pod_status.h"

namespace drakkar::node {

// Everything that decides what a node declares (KEP-5328), besides its gates. Known before the node
// exists, so that an autoscaler comes to the same answer.
struct NodeFeatureOptions {
  const features::Framework* framework = nullptr;  // null: the catalog
  features::GateLookup gate_enabled;               // empty: the node's gates
  std::map<std::string, std::string, std::less<>> static_configuration;
  // What the configuration says the runtime can do; what it cannot is not counted.
  features::RuntimeFeatures runtime_features;
  // What this node really does; empty: features::ImplementedByOurNode.
  std::span<const std::string_view> implemented;
};

// The features of this node: found once, when the agent starts, and the same until it ends. Says no
// to pods that need others. Immutable.
//
// With the gate NodeDeclaredFeatures off nothing is declared and nothing is checked. A release that
// does not know the gate (before 1.35) cannot declare either, but refuses pods whose spec asks for
// what that release does not have, as its own kubelet could not run them.
class NodeFeatures {
 public:
  // `offered` is what the runtime says it can do. Problems are logged.
  NodeFeatures(const NodeFeatureOptions& options, const FeatureGates& gates,
               const features::RuntimeFeatures& offered);

  // For node.status.declaredFeatures: valid, ascending, each once.
  const std::vector<std::string>& declared_names() const { return declaration_.names; }

  // Whether claims may bring requirements; then Check wants the pod's.
  bool AsksClaims() const { return checks_ && sees_skips_; }
  // Why the pod may not run here; nothing if it may.
  std::optional<PodVerdict> Check(api::Value pod, const std::vector<api::ObjectPtr>& claims) const;
  // What is wrong with a change of a pod that runs here; for an event, the change stands.
  std::optional<std::string> CheckUpdate(api::Value before, api::Value after) const;

 private:
  std::optional<PodVerdict> CheckOldRelease(api::Value pod) const;

  const features::Framework framework_;
  const FeatureGates gates_;
  const bool checks_;
  const bool sees_skips_;  // a release that knows skipNodeOperations
  const features::Version version_;
  features::Declaration declaration_;
};

}  // namespace drakkar::node
