#pragma once

#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// Limits what nodes may write, beyond what the node authorizer lets them access: their own Node
// without the labels, taints and owners that others rely on, the status of their own pods, mirror
// pods that reference nothing, their lease, their slices. Does not affect other users.
class NodeRestriction final : public AdmissionStep {
 public:
  std::string_view name() const override { return "NodeRestriction"; }
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override;
};

// A user who acts from a node (node_identity.h) may write that node's slices only. Comes after the
// policies, so that a driver's own policy has the word first.
class DriverConfinement final : public AdmissionStep {
 public:
  std::string_view name() const override { return "DriverConfinement"; }
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override;
};

}  // namespace drakkar::apiserver
