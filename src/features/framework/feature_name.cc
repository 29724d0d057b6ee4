#include "features/framework/feature_name.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::features {
namespace {

bool IsUpper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool IsLetter(char c) {
  return IsUpper(c) || (c >= 'a' && c <= 'z');
}
bool IsLetterOrDigit(char c) {
  return IsLetter(c) || (c >= '0' && c <= '9');
}

bool IsWellFormed(std::string_view name) {
  bool first = true;
  for (std::string_view segment : Split(name, '/')) {
    if (segment.empty() || !(first ? IsUpper(segment[0]) : IsLetter(segment[0]))) return false;
    if (!std::all_of(segment.begin(), segment.end(), IsLetterOrDigit)) return false;
    first = false;
  }
  return !first;
}

}  // namespace

Result<void> CheckFeatureName(std::string_view name) {
  if (name.size() > kMaxFeatureNameBytes) {
    return InvalidArgument(StrCat("invalid feature name ", Quote(name), ": must be no more than ",
                                  kMaxFeatureNameBytes, " characters"));
  }
  if (!IsWellFormed(name)) {
    return InvalidArgument(
        StrCat("invalid feature name ", Quote(name),
               ": must start with an UpperCamelCase segment, with subsequent segments separated "
               "by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only "
               "alphanumeric characters and slashes"));
  }
  return Ok();
}

CleanNames CleanFeatureNames(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  CleanNames clean;
  for (std::string& name : names) {
    if (Result<void> checked = CheckFeatureName(name); !checked.ok()) {
      clean.dropped.push_back(std::move(checked).error().message);
    } else if (!clean.names.empty() && clean.names.back() == name) {
      clean.dropped.push_back(StrCat("duplicate feature name ", Quote(name)));
    } else {
      clean.names.push_back(std::move(name));
    }
  }
  return clean;
}

}  // namespace drakkar::features
