#pragma once

#include "api/tree/value.h"
#include "apiserver/validation/findings.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::apiserver {

// The spec of a ResourceSlice, without metadata; `before` is absent on create.
Findings CheckResourceSlice(api::Value slice, api::Value before, const FeatureGates& gates);

}  // namespace drakkar::apiserver
