#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/schema.h"
#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::api {

// What to do about unknown and duplicate fields. Of duplicates, the last one counts. Unknown fields
// are always dropped.
enum class Strictness {
  kIgnore,
  kWarn,    // reported as warnings
  kStrict,  // rejected, all of them in one error
};

struct ObjectReadOptions {
  Strictness strictness = Strictness::kStrict;
  int max_depth = 100;
  std::size_t max_size_bytes = std::size_t{256} << 20;
  // Adds the fields that Go always writes with their zero values ("", 0, false, null, {}).
  bool zero_values = false;
};

struct ObjectReadResult {
  TreePtr tree;
  // unknown field "spec.foo", duplicate field "spec.x": at most a hundred.
  std::vector<std::string> warnings;
};

// Reads JSON of a type into the form in which Kubernetes would write it again:
// - fields in the order of the schema, names exact in case; keys of maps sorted;
// - nulls, and the zero values that Go leaves out, are left out; null in a list or map is the zero
//   value;
// - quantities, times and durations in canonical form, whole numbers within the range of their
//   type, raw values byte for byte.
// A value of the wrong type is an error in the words of Go's decoder, the first one wins:
//   json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec
// Text that is no JSON is an error before any other.
Result<ObjectReadResult> ReadObject(std::string_view json, const StructSchema& schema,
                                    const ObjectReadOptions& options = {});

// The same for a value that was read without a schema (YAML, the result of a patch).
Result<ObjectReadResult> ConvertObject(Value value, const StructSchema& schema,
                                       const ObjectReadOptions& options = {});
// Returns the same tree if it is already in that form.
Result<ObjectReadResult> ConvertObject(const TreePtr& tree, const StructSchema& schema,
                                       const ObjectReadOptions& options = {});

}  // namespace drakkar::api
