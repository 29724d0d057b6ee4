#pragma once

#include <string_view>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::api {

// The operations in a `skipNodeOperations` field, in either form (KEP-5945): true is "*", false and
// absent are none. Sorted, unique.
std::vector<std::string_view> SkippedOperations(Value field);

// Whether two fields mean the same, in either form.
inline bool SameSkippedOperations(Value a, Value b) {
  return SkippedOperations(a) == SkippedOperations(b);
}

}  // namespace drakkar::api
