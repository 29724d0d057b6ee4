#pragma once

#include "api/meta/semver.h"
#include "features/gates/feature_gates.h"

namespace drakkar::features {

// The version of a node or of the calling component: a full semantic version, because a feature's
// last version may lie between two pre-releases.
using Version = api::Semver;

// Parses "1.37", "v1.37.2" or "1.38.0-alpha.1+abc".
Result<Version> ParseVersion(std::string_view text);

// The version of a component that emulates a release.
inline Version VersionOf(ReleaseVersion release) {
  Version version;
  version.major = static_cast<std::uint64_t>(release.major);
  version.minor = static_cast<std::uint64_t>(release.minor);
  return version;
}

}  // namespace drakkar::features
