#pragma once

#include <map>
#include <string>

#include "api/meta/quantity.h"
#include "api/tree/value.h"

namespace drakkar::quota {

using Amounts = std::map<std::string, api::Quantity, std::less<>>;

// The most that a pod's containers need at any one time: the sum of containers and sidecars, or the
// largest init container together with the sidecars that run by then. `field` is "requests" or
// "limits". Amounts that cannot be read are left out.
Amounts ContainerAmounts(api::Value pod_spec, api::FieldName field);
// The same for the pod as a whole: pod-level resources replace those of the containers.
Amounts PodAmounts(api::Value pod_spec, api::FieldName field, bool with_overhead);

// A map of quantities.
Amounts ReadAmounts(api::Value map);
void Add(Amounts& sum, const Amounts& more);

}  // namespace drakkar::quota
