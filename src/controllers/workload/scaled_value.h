#pragma once

#include <cstdint>

#include "api/tree/value.h"

namespace drakkar::controllers {

// Resolves a number or a percentage of `total`, rounded up or down.
enum class Rounding { kUp, kDown };
std::int64_t ScaledValue(api::Value int_or_percent, std::int64_t total, Rounding rounding);

}  // namespace drakkar::controllers
