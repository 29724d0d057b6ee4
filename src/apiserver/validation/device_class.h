#pragma once

#include "api/tree/value.h"
#include "apiserver/validation/findings.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::apiserver {

// The spec of a DeviceClass; `before` is absent on create.
Findings CheckDeviceClass(api::Value object, api::Value before, const FeatureGates& gates);

}  // namespace drakkar::apiserver
