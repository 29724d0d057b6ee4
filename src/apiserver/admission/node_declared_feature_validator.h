#pragma once

#include "apiserver/rest/core.h"
#include "features/framework/framework.h"

namespace drakkar::apiserver {

// Rejects changes of pods that their node does not support (KEP-5328): infers the features that a
// change of the spec needs from the old and the new pod, and requires that the pod's node declares
// them. Covers updates of pods and of their `resize` subresource. Also rejects slices with devices
// that consume a node's own resources if that node does not declare that it accounts for them (gate
// DRANodeAllocatableResources). Does nothing while the gate NodeDeclaredFeatures is off.
class NodeDeclaredFeatureValidator final : public AdmissionStep {
 public:
  explicit NodeDeclaredFeatureValidator(features::Framework framework)
      : framework_(std::move(framework)) {}

  std::string_view name() const override { return "NodeDeclaredFeatureValidator"; }
  bool Concerns(const Request& request) const override;
  bool comes_after_validation() const override { return true; }
  std::optional<Failure> Check(const Request& request, api::Value object, api::Value before,
                               const StrategyContext& context,
                               std::vector<std::string>& warnings) override;

 private:
  const features::Framework framework_;
};

}  // namespace drakkar::apiserver
