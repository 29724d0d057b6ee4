#pragma once

#include "api/tree/value.h"
#include "apiserver/validation/findings.h"

namespace drakkar {
class FeatureGates;
}

// The rules that Kubernetes declares in the schema of resource.k8s.io. They check only what an
// update changes. Paths are those of v1. `before` is absent on create.
namespace drakkar::apiserver {

Findings DeclaredForResourceSlice(api::Value object, api::Value before, const FeatureGates& gates);
Findings DeclaredForResourceClaim(api::Value object, api::Value before);
Findings DeclaredForClaimTemplate(api::Value object, api::Value before);
Findings DeclaredForDeviceClass(api::Value object, api::Value before);
Findings DeclaredForDeviceTaintRule(api::Value object, api::Value before);
Findings DeclaredForPoolStatusRequest(api::Value object, api::Value before,
                                      const FeatureGates& gates);

}  // namespace drakkar::apiserver
