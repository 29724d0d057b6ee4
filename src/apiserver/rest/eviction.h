#pragma once

#include <functional>
#include <optional>
#include <string>

#include "apiserver/request/request.h"
#include "apiserver/watch/watch_cache.h"

namespace drakkar::apiserver {

// What policy/v1 Eviction asks for: deleting a pod, unless a PodDisruptionBudget needs it. A
// budget's numbers are taken from its spec and the pods it selects as they are now: no controller
// has to keep its status.
//
// Makes the delete options of the body part of `request`; a failure says why the pod stays.
std::optional<Failure> CheckEviction(Request& request, const api::Object& pod,
                                     const WatchCache& budgets, const WatchCache& pods);

}  // namespace drakkar::apiserver
