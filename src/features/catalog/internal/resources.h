#pragma once

#include "api/tree/value.h"

namespace drakkar::features {

// Whether two ResourceRequirements have equal values; absent and empty are equal.
bool EqualResources(api::Value a, api::Value b);

// Whether they are written identically, which is how Kubernetes compares init containers: "1"
// differs from "1000m", and an empty list from an absent one. Absent requirements equal empty ones.
bool IdenticalResources(api::Value a, api::Value b);

// Compares two quantities, strings or numbers, by value; as text if one is not a quantity.
bool EqualQuantities(api::Value a, api::Value b);

}  // namespace drakkar::features
