#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drakkar::features {

constexpr std::size_t kMaxFeatureNameBytes = 253;

// What is wrong with the name of a declared feature, in the words of the API server; nothing if it
// is fine. A name is `MyFeature` or `MyFeature/mySubFeature`.
std::optional<std::string> FeatureNameProblem(std::string_view name);

// A list as the API takes it: valid names in ascending byte order, each once. What cannot be kept
// comes back with the reason, for the log.
struct CleanNames {
  std::vector<std::string> names;
  std::vector<std::string> dropped;  // a sentence each
};
CleanNames CleanFeatureNames(std::vector<std::string> names);

}  // namespace drakkar::features
