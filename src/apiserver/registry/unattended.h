#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/scheme/scheme.h"
#include "api/tree/value.h"

namespace drakkar::apiserver {

// Kinds that we store although no controller of ours acts on them. Creating one returns a warning:
// `kubectl rollout status` of a Deployment without a controller reports success. A controller that
// starts to act on them removes its line from the table in unattended.cc and from
// docs/compatibility.md; a test compares the two.
struct Unattended {
  std::string_view group;
  std::string_view kind;
  // The objects of the kind to which it applies; null means all.
  bool (*concerns)(api::Value object);
  // What does not happen, and which component would do it.
  std::string_view warning;
};
std::span<const Unattended> UnattendedKinds();

// The lines of the table for a kind, in any version.
std::vector<const Unattended*> UnattendedOf(const api::KindSchema& kind);

// The warnings for an object in its storage version. On update (`before` is given) only new ones.
std::vector<std::string> UnattendedWarnings(std::span<const Unattended* const> lines,
                                            api::Value object, api::Value before);

}  // namespace drakkar::apiserver
