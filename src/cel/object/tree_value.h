#pragma once

#include "api/tree/value.h"
#include "cel/value/value.h"

namespace drakkar::cel {

// An API object, or a part of one, as expressions see it: objects are maps, absent and null are
// null. Members and elements are converted when an expression first reads them. `value` and `arena`
// must outlive the result.
Value TreeValue(Arena& arena, api::Value value);

}  // namespace drakkar::cel
