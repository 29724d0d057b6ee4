#pragma once

#include <cstddef>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::api {

struct JsonPatchLimits {
  std::size_t max_operations = 10'000;
  // What all copy operations of a patch together may add: copies of copies grow without end.
  std::size_t max_copied_bytes = 3 << 20;
};

// JSON patch, RFC 6902, with the liberties and the errors of the library that Kubernetes uses:
// negative indices count from the end, replacing a member that is not there adds it, numbers are
// tested as they are written (1.0 is not 1).
Result<TreePtr> ApplyJsonPatch(Value original, Value patch, const JsonPatchLimits& limits = {});

}  // namespace drakkar::api
