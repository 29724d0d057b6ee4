#pragma once

#include <string>

#include "cdi/spec.h"

namespace drakkar::cdi {

// The spec as a JSON file: two spaces of indentation, fields in the order of the specification,
// empty ones left out, strings escaped as Go's encoder does, a line end at the end. Reading it back
// gives the same spec, if that was valid UTF-8.
std::string WriteSpecJson(const Spec& spec);

}  // namespace drakkar::cdi
