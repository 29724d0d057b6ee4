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

// Without metadata. The spec of a claim never changes, so an update checks nothing else about it.
Findings CheckResourceClaim(api::Value claim, const FeatureGates& gates);
Findings CheckResourceClaimUpdate(api::Value claim, api::Value before);
Findings CheckResourceClaimStatus(api::Value claim, api::Value before, const FeatureGates& gates);

// The spec of a claim or of what a template makes.
void CheckClaimSpec(Findings& out, const api::FieldPath& path, api::Value spec,
                    const FeatureGates& gates);

// Driver, pool, device and share: what an allocation result and a device's status are about.
using DeviceKey =
    std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;
DeviceKey DeviceKeyOf(api::Value device);

}  // namespace drakkar::apiserver
