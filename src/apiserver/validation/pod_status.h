#pragma once

#include "api/meta/field_error.h"
#include "api/tree/value.h"

namespace drakkar::apiserver {

// Checks the status of a pod that somebody changes. `before` is the current pod: an address that is
// there already may stay.
api::FieldErrors ValidatePodStatus(api::Value pod, api::Value before);

}  // namespace drakkar::apiserver
