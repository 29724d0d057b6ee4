#pragma once

#include <string>
#include <string_view>

#include "api/tree/value.h"
#include "apiserver/custom/json_schema.h"
#include "cel/checker/declarations.h"
#include "cel/value/value.h"

// Custom resources as the rules in their schema see them: with types.
namespace drakkar::apiserver {

// A property's name as an identifier: "a-b" is a__dash__b, "namespace" is __namespace__. Empty if
// there is none; expressions then cannot refer to the property.
std::string EscapeProperty(std::string_view name);
std::string UnescapeProperty(std::string_view identifier);

// The type of values of the schema. Declares the structs that it consists of, by `name`.
cel::TypeRef DeclareSchemaType(cel::Declarations& declarations, const JsonSchema& schema,
                               const std::string& name);

// `value` with that type; what both borrow from must outlive the result.
cel::Value SchemaValue(cel::Arena& arena, api::Value value, const JsonSchema& schema);

}  // namespace drakkar::apiserver
