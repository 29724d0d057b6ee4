#pragma once

#include "api/tree/draft.h"
#include "api/tree/value.h"

namespace drakkar {
class FeatureGates;
}

// Drops the fields of disabled gates silently, unless the stored object already uses the feature.
// The exception is skipNodeOperations, which validation rejects if its gate is off. `before` is
// absent on create.
namespace drakkar::apiserver {

void DropDisabledSliceFields(api::Draft& slice, api::Value before, const FeatureGates& gates);
// The spec of a claim, or of the claims that a template produces.
void DropDisabledClaimSpecFields(api::Draft& spec, api::Value before, const FeatureGates& gates);
void DropDisabledClaimStatusFields(api::Draft& claim, api::Value before, const FeatureGates& gates);
void DropDisabledClassFields(api::Draft& object, api::Value before, const FeatureGates& gates);
void DropDisabledPoolRequestFields(api::Draft& object, api::Value before,
                                   const FeatureGates& gates);

// Drops entries of status.devices whose device was allocated before and no longer is.
void DropDeallocatedDevices(api::Draft& claim, api::Value before, const FeatureGates& gates);

}  // namespace drakkar::apiserver
