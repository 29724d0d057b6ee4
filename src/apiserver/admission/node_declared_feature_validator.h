#pragma once

#include "apiserver/rest/core.h"
#include "features/framework/framework.h"

namespace drakkar::apiserver {

// Refuses changes of pods that their node cannot follow (KEP-5328): what a change of the spec needs
// is inferred from the old and the new pod, and the node the pod is bound to must declare it. Looks
// at updates of pods and of their `resize` subresource. Also refuses slices with devices that take
// of a node's own resources where that node does not declare that it counts them (gate
// DRANodeAllocatableResources). Everything else passes, and so does all while the gate
// NodeDeclaredFeatures is off.
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
