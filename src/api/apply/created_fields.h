#pragma once

#include "api/apply/fields_writer.h"
#include "api/schema/schema.h"

namespace drakkar::api {

// What comes to be owned with a new object, written while walking over it, as
//   Subtract(SubtractBelow(CompareTyped(Value(), created), reset), server_fields)
// has it; nothing for the empty set. False: `created` has something in it that this does not know
// to write (no reader makes such), and `out` is of no use.
bool WriteCreatedFields(FieldsWriter& out, Value created, const StructSchema& schema,
                        const FieldNode* reset, const FieldNode* server_fields, Arena& arena);

}  // namespace drakkar::api
