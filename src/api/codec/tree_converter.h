#pragma once

#include "api/codec/object_reader.h"
#include "api/tree/freeze.h"

// Private to api/codec.
namespace drakkar::api {

// Whether Go omits this value of the field when it writes the object.
bool IsLeftOut(const FieldSchema& field, const Node& value);

enum class Conversion {
  kUnchanged,  // already in canonical form
  kChanged,    // `out` is the canonical form; borrows from the value and the arena
  kUnsure,     // something is unusual: read the JSON to find out
};

// Converts a well-typed tree to the form that ReadObject returns, without going through JSON: a
// fast path for trees made in this process, which are almost always correct. Returns kUnsure for
// every value that ReadObject would reject, warn about or rewrite (numbers for quantities, times in
// other forms, non-ASCII texts, unknown or duplicate fields).
Conversion ConvertWellTyped(Value value, const StructSchema& schema,
                            const ObjectReadOptions& options, Arena& arena, Node& out);

}  // namespace drakkar::api
