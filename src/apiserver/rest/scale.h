#pragma once

#include <optional>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "apiserver/request/request.h"

namespace drakkar::apiserver {

// The autoscaling/v1 Scale of a workload: its replicas and its selector.
api::ObjectPtr ScaleOf(const api::KindSchema& kind, const api::Object& workload);

// Sets the replicas of a workload, where its kind has them.
void SetReplicas(const api::KindSchema& kind, api::Draft& workload, std::int64_t replicas);

// Turns an update or patch of the Scale into an update of the workload, or fails with the reason.
std::optional<Failure> BuildScaleUpdate(Request& request, const api::ObjectPtr& workload,
                                        std::vector<std::string>& warnings);

}  // namespace drakkar::apiserver
