#pragma once

#include "api/schema/schema.h"
#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::api {

// Strategic merge patch: like a merge patch, but lists are merged by the key that the schema names,
// and directives in the patch ($patch, $retainKeys, $setElementOrder/x, $deleteFromPrimitiveList/x)
// modify the operation. Unknown fields are merged as objects and replaced as lists.
Result<TreePtr> ApplyStrategicPatch(Value original, Value patch, const StructSchema& schema);

// The strategic merge patch from `original` to `modified`; an empty object if they are equal.
Result<TreePtr> CreateStrategicPatch(Value original, Value modified, const StructSchema& schema);

}  // namespace drakkar::api
