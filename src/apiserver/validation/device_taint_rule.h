#pragma once

#include "api/tree/value.h"
#include "apiserver/validation/findings.h"

namespace drakkar::apiserver {

// A DeviceTaintRule without metadata; `before` is absent on create.
Findings CheckDeviceTaintRule(api::Value rule, api::Value before);
Findings CheckDeviceTaintRuleStatus(api::Value rule);

// The status of a ResourcePoolStatusRequest: set once, then immutable. Its spec has declared rules
// only.
Findings CheckPoolStatusRequestStatus(api::Value request, api::Value before);

}  // namespace drakkar::apiserver
