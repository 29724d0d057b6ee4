#pragma once

#include "api/schema/schema.h"
#include "api/tree/draft.h"

namespace drakkar::apiserver {

// Fills in the defaults that the schema declares, in `object` and everything below it. A field that
// Go cannot tell from its zero value counts as missing when it is empty or zero; a struct that is
// no pointer is always there. Levels that lack nothing stay borrowed.
void ApplySchemaDefaults(api::Draft& object, const api::StructSchema& schema);

// The same for one member of the object (a status update touches nothing else).
void ApplySchemaDefaults(api::Draft& object, const api::StructSchema& schema,
                         std::string_view member);

}  // namespace drakkar::apiserver
