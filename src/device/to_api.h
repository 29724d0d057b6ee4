#pragma once

#include "api/tree/draft.h"
#include "device/allocation.h"

namespace drakkar::device {

// The allocation as it stands in a claim's status. Fields that are empty are left out;
// skipNodeOperations is as it was written in the slice.
api::Draft AllocationToApi(const AllocationResult& allocation);
api::Draft NodeSelectorToApi(const NodeSelector& selector);
api::Draft TolerationToApi(const Toleration& toleration);

}  // namespace drakkar::device
