#pragma once

#include "api/tree/value.h"

namespace drakkar::features {

// Whether two ResourceRequirements mean the same: quantities by value, absent and empty alike.
bool EqualResources(api::Value a, api::Value b);

// Whether they are the same as written, which is how Kubernetes compares init containers: "1" is
// not "1000m", and an empty list is not an absent one. Absent requirements are empty ones.
bool IdenticalResources(api::Value a, api::Value b);

// Two quantities, as strings or numbers, by value; as text where one is no quantity.
bool EqualQuantities(api::Value a, api::Value b);

}  // namespace drakkar::features
