#pragma once

#include "api/codec/object_reader.h"
#include "api/tree/freeze.h"

// Private to api/codec.
namespace drakkar::api {

// Whether Go leaves this value of the field out when it writes the object.
bool IsLeftOut(const FieldSchema& field, const Node& value);

enum class Conversion {
  kUnchanged,  // it is in canonical form as it stands
  kChanged,    // `out` is the canonical form; borrows from the value and the arena
  kUnsure,     // something is unusual: reading its JSON says what
};

// Brings a well-typed tree into the form that ReadObject gives, walking over it: the short way for
// trees made in this process, which hardly ever have a fault. Never answers for a value that
// ReadObject would refuse, warn about, or have to rewrite (numbers for quantities, times in other
// forms, texts beyond ASCII, unknown or double fields): that is kUnsure.
Conversion ConvertWellTyped(Value value, const StructSchema& schema,
                            const ObjectReadOptions& options, Arena& arena, Node& out);

}  // namespace drakkar::api
