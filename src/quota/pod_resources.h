#pragma once

#include <map>
#include <string>

#include "api/meta/quantity.h"
#include "api/tree/value.h"

namespace drakkar::quota {

using Amounts = std::map<std::string, api::Quantity, std::less<>>;

// The most that a pod needs at any one time: the sum of its containers and sidecars, or its largest
// init container together with the sidecars that run by then. Pod-level resources replace the sum.
// `field` is "requests" or "limits". Amounts that cannot be read are left out.
Amounts PodAmounts(api::Value pod_spec, api::FieldName field, bool with_overhead);

// A map of quantities.
Amounts ReadAmounts(api::Value map);
void Add(Amounts& sum, const Amounts& more);

}  // namespace drakkar::quota
