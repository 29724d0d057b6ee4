#pragma once

#include "api/tree/draft.h"
#include "api/tree/value.h"

namespace drakkar {
class FeatureGates;
}

// What a gate that is off does to the fields it guards: they are taken away without a word, unless
// the stored object uses the feature already. skipNodeOperations is the exception: its gate makes
// validation refuse it. `before` is absent on create.
namespace drakkar::apiserver {

void DropDisabledSliceFields(api::Draft& slice, api::Value before, const FeatureGates& gates);
// The spec of a claim, or of the claims a template makes.
void DropDisabledClaimSpecFields(api::Draft& spec, api::Value before, const FeatureGates& gates);
void DropDisabledClaimStatusFields(api::Draft& claim, api::Value before, const FeatureGates& gates);
void DropDisabledClassFields(api::Draft& object, api::Value before, const FeatureGates& gates);
void DropDisabledPoolRequestFields(api::Draft& object, api::Value before,
                                   const FeatureGates& gates);

// What devices reported goes with their allocation: entries of status.devices whose device was
// allocated before and is not any more are removed.
void DropDeallocatedDevices(api::Draft& claim, api::Value before, const FeatureGates& gates);

}  // namespace drakkar::apiserver
