#pragma once

#include <functional>
#include <optional>
#include <string>

#include "apiserver/request/request.h"
#include "apiserver/watch/watch_cache.h"
#include "base/env/clock.h"

namespace drakkar::apiserver {

// Implements policy/v1 Eviction: deletes a pod unless that would violate a PodDisruptionBudget. The
// budget is computed from its spec and the pods it selects now, so no controller has to maintain
// its status.
//
// Adds the delete options of the body to `request`. A failure says why the pod cannot be evicted;
// otherwise `charged` is the budget that has one healthy pod less afterwards, null if there is
// none.
std::optional<Failure> CheckEviction(Request& request, const api::Object& pod,
                                     const WatchCache& budgets, const WatchCache& pods,
                                     WallTime now, api::ObjectPtr& charged);

// The budget with a note in its status that the pod is going. Where several evictions may be
// decided at the same time, it is written first: of two that start from one version, one has to
// look again.
api::TreePtr ChargeBudget(const api::Object& budget, std::string_view pod, WallTime now);

// The pod with the condition that says why it is about to fail, for Jobs that ignore such failures.
api::TreePtr MarkEvicted(const api::Object& pod, WallTime now);

}  // namespace drakkar::apiserver
