#pragma once

#include "api/tree/value.h"
#include "apiserver/validation/findings.h"

namespace drakkar::apiserver {

// A consumable capacity: the default and the allowed amounts must fit it and each other.
// `fractions` counts amounts below one in thousandths.
void CheckRequestPolicy(Findings& out, const api::FieldPath& path, api::Value capacity,
                        bool fractions);

// A capacity of a device that is allocated to one claim at most, or to several.
void CheckCapacity(Findings& out, const api::FieldPath& path, api::Value capacity,
                   bool multiple_allocations, bool fractions);

}  // namespace drakkar::apiserver
