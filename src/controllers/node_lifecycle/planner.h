#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "base/env/clock.h"

// The decisions of the node lifecycle controller about one node. Pure functions.
namespace drakkar::controllers {

// "True", "False", "Unknown", or "" if the node never reported.
std::string_view ReadinessOf(const api::Object& node);

// The status of a node that has stopped sending heartbeats; nullopt if it already has it.
std::optional<api::Draft> PlanUnknownStatus(const api::Object& node, WallTime now);

enum class Eviction {
  kForbidden,  // NoExecute taints are removed: the whole cluster seems to be down
  kNotYet,     // they are kept, but none is added
  kAllowed,
};
struct TaintPlan {
  // The taints that the node should have; nullopt if it has them.
  std::optional<api::Draft> taints;
  // Whether a NoExecute taint is missing, which will evict pods.
  bool wants_eviction = false;
};
// Taints that follow from the node's conditions and from spec.unschedulable. NoSchedule taints
// follow at once; NoExecute taints as `eviction` says. All other taints are kept.
TaintPlan PlanTaints(const api::Object& node, Eviction eviction, WallTime now);

}  // namespace drakkar::controllers
