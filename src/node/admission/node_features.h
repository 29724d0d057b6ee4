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
#include "node/admission/pod_verdict.h"

namespace drakkar::node {

// Everything besides the feature gates that decides what a node declares (KEP-5328). It is known
// before the node exists, so an autoscaler arrives at the same answer.
struct NodeFeatureOptions {
  const features::Framework* framework = nullptr;  // null: the catalog
  features::GateLookup gate_enabled;               // empty: the node's gates
  std::map<std::string, std::string, std::less<>> static_configuration;
  // Features the configuration declares for the runtime. Those the runtime lacks are ignored.
  features::RuntimeFeatures runtime_features;
  // Features this node implements; empty: features::ImplementedByOurNode.
  std::span<const std::string_view> implemented;
};

// The features of this node, determined once when the agent starts. Rejects pods that need others.
// Immutable.
//
// With the gate NodeDeclaredFeatures off, nothing is declared and nothing is checked. A release
// that does not know the gate (before 1.35) cannot declare features either, but rejects pods whose
// spec uses what that release does not have, since its own kubelet could not run them.
class NodeFeatures {
 public:
  // `offered` are the features the runtime reports. Mismatches are logged.
  NodeFeatures(const NodeFeatureOptions& options, const FeatureGates& gates,
               const features::RuntimeFeatures& offered);

  // For node.status.declaredFeatures: valid, sorted, no duplicates.
  const std::vector<std::string>& declared_names() const { return declaration_.names; }

  // Whether claims can add requirements; if so, Check needs the pod's claims.
  bool AsksClaims() const { return checks_ && sees_skips_; }
  // Why the pod cannot run here; nothing if it can.
  std::optional<PodVerdict> Check(api::Value pod, const std::vector<api::ObjectPtr>& claims) const;
  // What is wrong with an update of a running pod. It is only reported as an event: the update
  // stands.
  std::optional<std::string> CheckUpdate(api::Value before, api::Value after) const;

 private:
  std::optional<PodVerdict> CheckOldRelease(api::Value pod) const;

  const features::Framework framework_;
  const FeatureGates gates_;
  const bool checks_;
  const bool sees_skips_;  // the release knows skipNodeOperations
  const features::Version version_;
  features::Declaration declaration_;
};

}  // namespace drakkar::node
