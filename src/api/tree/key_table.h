#pragma once

#include <span>

#include "api/tree/value.h"

namespace drakkar::api {

// Every name of the API schema, each once, in one static array: SchemaKeys()[i].id == i. Entry 0 is
// a placeholder with an empty text and is never found. Generated from schema/ with "api/keys.h";
// where nothing is generated, no_schema_keys.cc gives a table without names.
std::span<const Key> SchemaKeys();

}  // namespace drakkar::api
