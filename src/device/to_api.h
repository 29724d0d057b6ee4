#pragma once

#include "api/tree/draft.h"
#include "device/allocation.h"

namespace drakkar::device {

// Writes the allocation as in a claim's status. Empty fields are omitted; skipNodeOperations is
// written as in the slice.
api::Draft AllocationToApi(const AllocationResult& allocation);
api::Draft NodeSelectorToApi(const NodeSelector& selector);
api::Draft TolerationToApi(const Toleration& toleration);

}  // namespace drakkar::device
