#pragma once

#include <string_view>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::api {

// The operations that a field `skipNodeOperations` names, in either form (KEP-5945): true is "*",
// false and absent are none. Sorted, unique.
std::vector<std::string_view> SkippedOperations(Value field);

// Whether two fields mean the same, whatever their forms.
inline bool SameSkippedOperations(Value a, Value b) {
  return SkippedOperations(a) == SkippedOperations(b);
}

}  // namespace drakkar::api
