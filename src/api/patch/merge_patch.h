#pragma once

#include <string_view>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::api {

// JSON merge patch, RFC 7386: members of objects are merged, null removes, anything else replaces.
// The patch is an object, or an array that replaces everything; anything else is "Invalid JSON
// Patch", as in the library that Kubernetes uses.
Result<TreePtr> ApplyMergePatch(Value original, Value patch);

// The merge patch from `original` to `modified`; an empty object if they are equal.
TreePtr CreateMergePatch(Value original, Value modified);

}  // namespace drakkar::api
