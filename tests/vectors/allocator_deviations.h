#pragma once

#include <map>
#include <string_view>

namespace drakkar::vectors {

// Cases of the allocator vectors in which our answer differs on purpose, and why. The list is
// exact: a listed case that agrees fails the test.
inline const std::map<std::string_view, std::string_view>& AllocatorDeviations() {
  static const std::map<std::string_view, std::string_view> kDeviations = {
  };
  return kDeviations;
}

}  // namespace drakkar::vectors
