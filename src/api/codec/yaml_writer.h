#pragma once

#include <string>

#include "api/tree/value.h"

namespace drakkar::api {

// YAML as kubectl prints it: block style, keys sorted, lists at the column of their key, texts
// plain where that is safe, long lines folded after column 80. Ends in a line feed.
std::string WriteYaml(Value value);

}  // namespace drakkar::api
