#pragma once

#include <string>
#include <tuple>

#include "api/tree/value.h"
#include "apiserver/validation/findings.h"
#include "apiserver/validation/resource_rules.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::apiserver {

// Without metadata. The spec of a claim is immutable, so an update checks only that.
Findings CheckResourceClaim(api::Value claim, const FeatureGates& gates);
Findings CheckResourceClaimUpdate(api::Value claim, api::Value before);
Findings CheckResourceClaimStatus(api::Value claim, api::Value before, const FeatureGates& gates);

// The spec of a claim, or of the claims that a template produces.
void CheckClaimSpec(Findings& out, const api::FieldPath& path, api::Value spec,
                    const FeatureGates& gates);

// Driver, pool, device and share: the key of an allocation result and of a device's status.
using DeviceKey =
    std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;
DeviceKey DeviceKeyOf(api::Value device);

}  // namespace drakkar::apiserver
