#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "apiserver/admission/pod_security/policy.h"

namespace drakkar::apiserver::pod_security {

// What a pod does that a level forbids: "host namespaces", "hostNetwork=true".
struct Violation {
  std::string reason;
  std::string detail;
};

using CheckPod = std::optional<Violation> (*)(api::Value metadata, api::Value spec);

// One check as it is since a release; a later line of the same name replaces it. The restricted
// level has the checks of the baseline as well, but for one that it `overrides`.
struct Check {
  std::string_view name;
  Level level;
  int since_minor;
  CheckPod check;
  std::string_view overrides = {};
};
// Baseline before restricted, then by name, then by release: the order of messages.
std::span<const Check> AllChecks();

// All violations of a pod, or of what a workload makes pods of. Releases after `newest_minor` are
// taken as that one.
std::vector<Violation> Violations(LevelVersion policy, int newest_minor, api::Value metadata,
                                  api::Value spec);

// "host namespaces, privileged" and "host namespaces (hostNetwork=true), privileged (...)".
std::string Reasons(const std::vector<Violation>& violations);
std::string Details(const std::vector<Violation>& violations);

}  // namespace drakkar::apiserver::pod_security
