#pragma once

#include <cstdint>
#include <limits>

#include "api/meta/quantity.h"

// Arithmetic on amounts that users choose. Quantities reach 2^63-1, so that their thousandths, sums
// and products do not fit an int64. An amount that is too large stays the largest one: nothing has
// room for it.
namespace drakkar::api {

inline std::int64_t SaturatedAdd(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? std::numeric_limits<std::int64_t>::max()
               : std::numeric_limits<std::int64_t>::min();
}

inline std::int64_t SaturatedMultiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a > 0) == (b > 0) ? std::numeric_limits<std::int64_t>::max()
                            : std::numeric_limits<std::int64_t>::min();
}

// ceil(quantity / 10^scale) for scales 0 and kMilli.
inline std::int64_t SaturatedValue(const Quantity& quantity, std::int32_t scale = 0) {
  // Below 2^63, with some distance for the rounding of the double.
  constexpr double kMaxSafe = 9.2e18;
  const double approximate =
      quantity.AsApproximateFloat() * (scale == Quantity::kMilli ? 1000.0 : 1.0);
  if (approximate >= kMaxSafe) return std::numeric_limits<std::int64_t>::max();
  if (approximate <= -kMaxSafe) return std::numeric_limits<std::int64_t>::min();
  return quantity.ScaledValue(scale);
}

}  // namespace drakkar::api
