#pragma once

#include "api/tree/value.h"
#include "base/result/result.h"
#include "device/allocation.h"
#include "device/claim.h"
#include "device/node_selector.h"
#include "device/slice.h"
#include "device/taint_rule.h"

namespace drakkar::device {

// API objects (resource.k8s.io/v1, core/v1) as the plain structs that device rules work on. The
// result owns everything; the tree may go away.
//
// Nothing is defaulted. Fields that we do not know are left out and listed in `unknown_fields`; a
// value that cannot be read (a quantity that does not parse, a list where an object belongs) is an
// error that names its path.
Result<Slice> SliceFromApi(api::Value slice);
Result<Claim> ClaimFromApi(api::Value claim);
Result<DeviceClass> DeviceClassFromApi(api::Value device_class);
Result<TaintRule> TaintRuleFromApi(api::Value rule);
Result<AllocationResult> AllocationFromApi(api::Value allocation);  // a claim's status.allocation
Node NodeFromApi(api::Value node);
Result<NodeSelector> NodeSelectorFromApi(api::Value selector);
NodeSelectorTerm NodeSelectorTermFromApi(api::Value term);

}  // namespace drakkar::device
