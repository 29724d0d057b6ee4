#pragma once

#include <string>
#include <string_view>

#include "base/env/clock.h"

namespace drakkar::cli {

// Age in kubectl's format: "45s", "12m", "3h12m", "2d4h"; "<unknown>" if `time` is empty.
std::string AgeOf(std::string_view time, WallTime now);

}  // namespace drakkar::cli
