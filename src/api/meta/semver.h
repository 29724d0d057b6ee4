#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::api {

// A semantic version (semver.org 2.0.0). Build metadata is kept but ignored in comparisons.
struct Semver {
  struct Identifier {
    std::string text;  // set for a numeric identifier only if it does not fit
    std::uint64_t number = 0;
    bool is_number = false;
  };

  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  std::uint64_t patch = 0;
  std::vector<Identifier> prerelease;
  std::vector<std::string> build;

  // Exactly MAJOR.MINOR.PATCH[-PRERELEASE][+BUILD]. Error texts are those of the Kubernetes API.
  static Result<Semver> Parse(std::string_view text);
  // Also accepts one leading "v", leading zeros, and a missing minor or patch.
  static Result<Semver> ParseNormalized(std::string_view text);

  int Compare(const Semver& other) const {
    if (major != other.major) return major < other.major ? -1 : 1;
    if (minor != other.minor) return minor < other.minor ? -1 : 1;
    if (patch != other.patch) return patch < other.patch ? -1 : 1;
    if (prerelease.empty() && other.prerelease.empty()) return 0;
    return ComparePrerelease(other);
  }
  bool operator==(const Semver& other) const { return Compare(other) == 0; }

  std::string ToString() const;

 private:
  int ComparePrerelease(const Semver& other) const;
};

}  // namespace drakkar::api
