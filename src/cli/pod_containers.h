#pragma once

#include <string>

#include "api/tree/value.h"
#include "cli/console.h"

namespace drakkar::cli {

// The container meant when none is named: the annotation's, else the first regular one, said on
// standard error where there was a choice.
std::string DefaultContainer(api::Value pod, Console& console);

}  // namespace drakkar::cli
