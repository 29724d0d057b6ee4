#pragma once

#include <cstddef>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::api {

struct JsonPatchLimits {
  std::size_t max_operations = 10'000;
  // Limit for what all copy operations of a patch may add together: copies of copies grow
  // exponentially.
  std::size_t max_copied_bytes = 3 << 20;
};

// JSON patch, RFC 6902, with the extensions and errors of the library that Kubernetes uses:
// negative indices count from the end, replacing a missing member adds it, and numbers are compared
// as written (1.0 is not 1).
Result<TreePtr> ApplyJsonPatch(Value original, Value patch, const JsonPatchLimits& limits = {});

}  // namespace drakkar::api
