#pragma once

#include <string>

#include "api/tree/value.h"

namespace drakkar::api {

// YAML as kubectl prints it: block style, sorted keys, lists at the column of their key, texts
// plain where that is safe, long lines folded after column 80. Ends with a line feed.
std::string WriteYaml(Value value);

}  // namespace drakkar::api
