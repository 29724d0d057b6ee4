#pragma once

#include <limits>
#include <string>
#include <string_view>

#include "api/meta/field_error.h"
#include "api/tree/value.h"

namespace drakkar::apiserver::pod_security {

// From least to most restrictive.
enum class Level { kPrivileged, kBaseline, kRestricted };
std::string_view LevelName(Level level);

// A level as defined by a release: the minor version of "v1.x", or the latest.
inline constexpr int kLatest = std::numeric_limits<int>::max();
struct LevelVersion {
  Level level = Level::kPrivileged;
  int minor = kLatest;
  bool operator==(const LevelVersion&) const = default;
  std::string ToString() const;  // "restricted:latest", "baseline:v1.30"
};

// The levels of a namespace for its pods: what is enforced, what is logged, and what users are
// warned about.
struct Policy {
  LevelVersion enforce;
  LevelVersion audit;
  LevelVersion warn;
  bool is_privileged() const {
    return enforce.level == Level::kPrivileged && audit.level == Level::kPrivileged &&
           warn.level == Level::kPrivileged;
  }
};

// The policy from a namespace's labels pod-security.kubernetes.io/...; privileged without them. A
// label that cannot be parsed adds an error, and its mode is then restricted to enforce and
// privileged to audit and to warn.
Policy PolicyOf(api::Value namespace_labels, api::FieldErrors& errors);

}  // namespace drakkar::apiserver::pod_security
