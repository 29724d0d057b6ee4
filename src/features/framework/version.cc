#include "features/framework/version.h"

#include "base/text/text.h"

namespace drakkar::features {

Result<Version> ParseVersion(std::string_view text) {
  Result<Version> version = Version::ParseNormalized(text);
  // A major version alone does not identify a release.
  if (version.ok() && text.find('.') != text.npos) return version;
  return InvalidArgument(
      StrCat("version ", Quote(text), " is invalid; use for example 1.37 or 1.37.2"));
}

}  // namespace drakkar::features
