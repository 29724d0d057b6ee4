#pragma once

#include "api/apply/fields_writer.h"
#include "api/schema/schema.h"

namespace drakkar::api {

// Writes the set of fields that the creator of a new object owns, in one pass over the object.
// Equivalent to writing Subtract(SubtractBelow(CompareTyped(Value(), created), reset),
// server_fields); writes nothing for the empty set. Returns false, with `out` unusable, if
// `created` contains something this cannot write (no reader produces such trees).
bool WriteCreatedFields(FieldsWriter& out, Value created, const StructSchema& schema,
                        const FieldNode* reset, const FieldNode* server_fields, Arena& arena);

}  // namespace drakkar::api
