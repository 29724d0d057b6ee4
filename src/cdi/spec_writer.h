#pragma once

#include <string>

#include "cdi/spec.h"

namespace drakkar::cdi {

// Writes the spec as a JSON file: indented by two spaces, fields in the order of the specification,
// without empty fields, strings escaped like Go's encoder, with a final newline. Reading it back
// gives the same spec if it was valid UTF-8.
std::string WriteSpecJson(const Spec& spec);

}  // namespace drakkar::cdi
