#pragma once

#include <string>

#include "api/tree/value.h"
#include "cli/console.h"

namespace drakkar::cli {

// The container to use if none is given: the annotation's, otherwise the first regular one. If
// there is a choice, prints it to standard error.
std::string DefaultContainer(api::Value pod, Console& console);

}  // namespace drakkar::cli
