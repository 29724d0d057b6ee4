#pragma once

#include <string>
#include <string_view>

#include "base/env/clock.h"

namespace drakkar::cli {

// How long ago that was, as kubectl words it: "45s", "12m", "3h12m", "2d4h". "<unknown>" for no
// time.
std::string AgeOf(std::string_view time, WallTime now);

}  // namespace drakkar::cli
