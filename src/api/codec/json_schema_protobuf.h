#pragma once

#include <string>
#include <string_view>

#include "api/schema/schema.h"
#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::api {

// JSONSchemaProps, the schema in a CustomResourceDefinition, as protobuf. It is free-form in our
// tables, because JSON Schema is recursive and has members with several types.

// Whether the field holds such a schema.
bool IsJsonSchema(const FieldSchema& field);
// The schema as JSON. Nesting is limited to 100 levels. JSON inside the message (defaults, enums)
// is copied without being checked.
Result<std::string> ReadJsonSchema(std::string_view message);
// Members that protobuf has no field for are omitted.
std::string WriteJsonSchema(Value schema);

}  // namespace drakkar::api
