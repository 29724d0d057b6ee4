#pragma once

#include <limits>
#include <string>
#include <string_view>

#include "api/meta/field_error.h"
#include "api/tree/value.h"

namespace drakkar::apiserver::pod_security {

// From lax to strict.
enum class Level { kPrivileged, kBaseline, kRestricted };
std::string_view LevelName(Level level);

// A level as a release defined it: the minor of "v1.x", or the latest.
inline constexpr int kLatest = std::numeric_limits<int>::max();
struct LevelVersion {
  Level level = Level::kPrivileged;
  int minor = kLatest;
  bool operator==(const LevelVersion&) const = default;
  std::string ToString() const;  // "restricted:latest", "baseline:v1.30"
};

// What a namespace demands of its pods: what they must not violate, what is logged, what users are
// warned of.
struct Policy {
  LevelVersion enforce;
  LevelVersion audit;
  LevelVersion warn;
  bool is_privileged() const {
    return enforce.level == Level::kPrivileged && audit.level == Level::kPrivileged &&
           warn.level == Level::kPrivileged;
  }
};

// The policy that a namespace's labels pod-security.kubernetes.io/... ask for; privileged without
// them. A label that cannot be read adds an error, and its mode is then strict to enforce and lax
// to audit and to warn.
Policy PolicyOf(api::Value namespace_labels, api::FieldErrors& errors);

}  // namespace drakkar::apiserver::pod_security
