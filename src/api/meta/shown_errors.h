#pragma once

#include <cstddef>

namespace drakkar::api {

// Maximum number of problems reported for one object; the answer then states how many more there
// are. Bounds both the answer and the work.
inline constexpr std::size_t kMaxShownErrors = 100;
// The same for the length of their texts.
inline constexpr std::size_t kMaxShownBytes = 64 * 1024;

}  // namespace drakkar::api
