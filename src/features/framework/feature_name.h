#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::features {

constexpr std::size_t kMaxFeatureNameBytes = 253;

// Checks the name of a declared feature, `MyFeature` or `MyFeature/mySubFeature`. The error is
// worded as the API server words it.
Result<void> CheckFeatureName(std::string_view name);

// A list as the API accepts it: valid names, sorted by bytes, without duplicates. Dropped names
// come with the reason, for the log.
struct CleanNames {
  std::vector<std::string> names;
  std::vector<std::string> dropped;  // one message each
};
CleanNames CleanFeatureNames(std::vector<std::string> names);

}  // namespace drakkar::features
