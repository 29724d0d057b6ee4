#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/scheme/scheme.h"
#include "api/tree/value.h"

namespace drakkar::apiserver {

// Objects that are stored although nothing of ours acts on them. Whoever creates one is warned:
// `kubectl rollout status` of a Deployment without a controller reports success. A controller that
// comes to act on them takes its line out of the table in unattended.cc and out of
// docs/compatibility.md, which a test compares.
struct Unattended {
  std::string_view group;
  std::string_view kind;
  // Which objects of the kind; null: all.
  bool (*concerns)(api::Value object);
  // What does not happen, and who would see to it.
  std::string_view warning;
};
std::span<const Unattended> UnattendedKinds();

// The lines of the table that are about a kind, in whatever version.
std::vector<const Unattended*> UnattendedOf(const api::KindSchema& kind);

// The warnings about an object in the version it is stored in; on update (`before` is given) only
// those that were not due before.
std::vector<std::string> UnattendedWarnings(std::span<const Unattended* const> lines,
                                            api::Value object, api::Value before);

}  // namespace drakkar::apiserver
