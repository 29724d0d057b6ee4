#pragma once

#include <cstddef>

namespace drakkar::api {

// Whoever sends an object with more mistakes than this is told how many more there are: neither the
// answer nor the work for it grows with them.
inline constexpr std::size_t kMaxShownErrors = 100;

}  // namespace drakkar::api
