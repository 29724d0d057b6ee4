#pragma once

#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// What nodes may write, beyond what the node authorizer lets them reach: their own Node without the
// labels, taints and owners that others rely on, the status of their own pods, mirror pods that
// name nothing, their lease, their slices. Whoever acts from a node (node_identity.h) is held to
// the slices of that node. Everybody else passes.
class NodeRestriction final : public AdmissionStep {
 public:
  std::string_view name() const override { return "NodeRestriction"; }
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override;
};

}  // namespace drakkar::apiserver
