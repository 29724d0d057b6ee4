#pragma once

#include <string_view>

#include "api/tree/value.h"

namespace drakkar::api {

// What a plain (unquoted) scalar means in the YAML 1.1 dialect of Kubernetes' tools: yes, on and y
// are booleans, 0x1f and 017 integers, ~ is null, timestamps are texts. A text node borrows `text`.
// .nan and .inf give a double that is not finite.
Node ResolveYamlScalar(std::string_view text);

}  // namespace drakkar::api
