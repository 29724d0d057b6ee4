#pragma once

#include "api/schema/schema.h"
#include "api/tree/draft.h"

namespace drakkar::apiserver {

// Sets the defaults that the schema declares, in `object` and everything below it. A field that is
// not a pointer in Go counts as missing if it is empty or zero; a struct that is not a pointer
// always exists. Parts that lack no defaults stay borrowed.
void ApplySchemaDefaults(api::Draft& object, const api::StructSchema& schema);

// The same for one member of the object (a status update touches nothing else).
void ApplySchemaDefaults(api::Draft& object, const api::StructSchema& schema,
                         std::string_view member);

}  // namespace drakkar::apiserver
