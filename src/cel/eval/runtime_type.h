#pragma once

#include <span>
#include <string_view>

#include "cel/checker/declarations.h"
#include "cel/value/value.h"

namespace drakkar::cel {

// Whether the arguments have the kinds an overload is declared for. Elements are not looked at.
bool Accepts(const Overload& overload, std::span<const Value> args);

// The name Kubernetes' error messages give a value's type: "types.String".
std::string_view GoTypeName(const Value& value);

}  // namespace drakkar::cel
