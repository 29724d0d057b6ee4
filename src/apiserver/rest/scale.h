#pragma once

#include <optional>

#include "api/meta/object.h"
#include "apiserver/request/request.h"

namespace drakkar::apiserver {

// The autoscaling/v1 Scale of a workload: its replicas and its selector.
api::ObjectPtr ScaleOf(const api::KindSchema& kind, const api::Object& workload);

// Turns an update or patch of the Scale into an update of the workload, or fails with the reason.
std::optional<Failure> BuildScaleUpdate(Request& request, const api::ObjectPtr& workload,
                                        std::vector<std::string>& warnings);

}  // namespace drakkar::apiserver
