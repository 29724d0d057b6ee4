#pragma once

#include <string>

#include "base/env/clock.h"

namespace drakkar::api {

// An age as kubectl prints it: one or two units, coarser for longer ones. "45s", "2m30s", "12m",
// "3h12m", "26h", "2d4h", "300d", "2y8d". Less than a second in the future is "0s", more is
// "<invalid>".
std::string FormatAge(Duration age);

}  // namespace drakkar::api
