#pragma once

#include "api/tree/draft.h"
#include "device/allocation.h"

namespace drakkar::device {

// The allocation as in a claim's status. Empty fields are left out; skipNodeOperations is as
// written in the slice.
api::Draft AllocationToApi(const AllocationResult& allocation);
api::Draft NodeSelectorToApi(const NodeSelector& selector);
api::Draft TolerationToApi(const Toleration& toleration);

}  // namespace drakkar::device
