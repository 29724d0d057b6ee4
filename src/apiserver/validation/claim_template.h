#pragma once

#include "api/tree/value.h"
#include "apiserver/validation/findings.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::apiserver {

// A ResourceClaimTemplate without metadata. An update validates the whole spec again and requires
// that it is unchanged.
Findings CheckClaimTemplate(api::Value object, const FeatureGates& gates);
Findings CheckClaimTemplateUpdate(api::Value object, api::Value before);

}  // namespace drakkar::apiserver
