#pragma once

#include <optional>

#include "api/meta/object.h"
#include "apiserver/request/request.h"

namespace drakkar::apiserver {

// The autoscaling/v1 Scale of a workload: its replicas, and whom it selects.
api::ObjectPtr ScaleOf(const api::Object& workload);

// Turns an update or a patch of the Scale into the update of the workload that it stands for. A
// failure says why it cannot.
std::optional<Failure> BuildScaleUpdate(Request& request, const api::ObjectPtr& workload,
                                        std::vector<std::string>& warnings);

}  // namespace drakkar::apiserver
