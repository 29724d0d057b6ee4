#pragma once

#include "api/meta/semver.h"
#include "features/gates/feature_gates.h"

namespace drakkar::features {

// The version of a node or of the component that asks: full semantic version, since a feature's
// last version may lie between two pre-releases.
using Version = api::Semver;

// "1.37", "v1.37.2", "1.38.0-alpha.1+abc". The error says how a version is written.
Result<Version> ParseVersion(std::string_view text);

// A component emulating a release asks with this one.
inline Version VersionOf(ReleaseVersion release) {
  Version version;
  version.major = static_cast<std::uint64_t>(release.major);
  version.minor = static_cast<std::uint64_t>(release.minor);
  return version;
}

}  // namespace drakkar::features
