#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/env/clock.h"

namespace drakkar::api {

// A number of seconds that a user chose, such as activeDeadlineSeconds, as a duration that can be
// added to and subtracted from the current time: at most a century either way. More seconds than
// that mean the same, and nanoseconds of 2^63 seconds do not fit.
inline Duration BoundedSeconds(std::int64_t seconds) {
  constexpr std::int64_t kCentury = 100LL * 365 * 24 * 3600;
  return std::chrono::seconds(std::clamp<std::int64_t>(seconds, -kCentury, kCentury));
}

}  // namespace drakkar::api
