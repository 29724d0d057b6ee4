#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/explain/explanation.h"
#include "answers/why/what_if.h"
#include "answers/why/why.h"
#include "api/meta/object.h"
#include "features/gates/feature_gates.h"

namespace drakkar::answers {

// Feature gates whose being off keeps a pod from running, and where to turn them on.

// A pod, and a node that rejects it.
struct RefusedOn {
  const api::Object& pod;
  const Objects& claims;  // of the pod
  const api::Object& node;
  const allocator::Explanation* devices;  // null: no device was looked at
};

// The features that the node does not declare although the pod or its devices require them.
std::vector<std::string> FindMissingFeatures(const RefusedOn& refused, ReleaseVersion scheduler);

// What makes the node declare these features: its gates, settings, and a newer release if its own
// does not have the gates.
Help MakeNodeHelp(const api::Object& node, const std::vector<std::string>& features);

// The gates that could be turned on in a component with these gates: each gate that is off, with
// the gates it needs. Smallest first; locked gates are left out.
std::vector<std::vector<Gate>> ListGatesToTry(const FeatureGates& gates);
FeatureGates TurnOn(FeatureGates gates, const std::vector<Gate>& on);
Help MakeSchedulerHelp(const std::vector<Gate>& gates);

// Gates of the node, or of the scheduler, with which the pod would fit the node.
std::optional<Help> FindNodeHelp(const RefusedOn& refused, ReleaseVersion scheduler,
                                 const WhatIf& what_if);
std::optional<Help> FindSchedulerHelp(const std::string& node, const FeatureGates& gates,
                                      const WhatIf& what_if);

// The gate that is off in the API server, from the message of the pod's condition PodScheduled:
// the server drops what a gate guards, or rejects it.
std::optional<Help> FindServerHelp(std::string_view message);

// "turn on feature gate X in the scheduler (--feature-gates=X=true)".
std::string GateText(const Help& help);

}  // namespace drakkar::answers
