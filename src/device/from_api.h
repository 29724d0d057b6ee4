#pragma once

#include "api/tree/value.h"
#include "base/result/result.h"
#include "device/allocation.h"
#include "device/claim.h"
#include "device/node_selector.h"
#include "device/slice.h"
#include "device/taint_rule.h"

namespace drakkar::device {

// Convert API objects (resource.k8s.io/v1, core/v1) to the plain structs of the device rules. The
// result owns its data and does not refer to the tree.
//
// No defaults are applied. Unknown fields are left out and listed in `unknown_fields`. A value that
// cannot be read (a quantity that does not parse, a list instead of an object) is an error that
// names its path.
Result<Slice> SliceFromApi(api::Value slice);
Result<Claim> ClaimFromApi(api::Value claim);
Result<DeviceClass> DeviceClassFromApi(api::Value device_class);
Result<TaintRule> TaintRuleFromApi(api::Value rule);
Result<AllocationResult> AllocationFromApi(api::Value allocation);  // a claim's status.allocation
Node NodeFromApi(api::Value node);
Result<NodeSelector> NodeSelectorFromApi(api::Value selector);
NodeSelectorTerm NodeSelectorTermFromApi(api::Value term);

}  // namespace drakkar::device
