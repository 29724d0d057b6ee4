#pragma once

#include <span>

#include "api/tree/key.h"

namespace drakkar::api {

// Every schema name once, in a static array: SchemaKeys()[i].id == i. Entry 0 is a placeholder with
// an empty text and is never found. Generated from schema/.
std::span<const Key> SchemaKeys();

}  // namespace drakkar::api
