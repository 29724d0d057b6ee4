#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "apiserver/admission/pod_security/policy.h"

namespace drakkar::apiserver::pod_security {

// Something a pod does that a level forbids: "host namespaces", "hostNetwork=true".
struct Violation {
  std::string reason;
  std::string detail;
};

using CheckPod = std::optional<Violation> (*)(api::Value metadata, api::Value spec);

// One check, as defined since a release; a later entry of the same name replaces it. The restricted
// level includes the checks of the baseline, except one that it `overrides`.
struct Check {
  std::string_view name;
  Level level;
  int since_minor;
  CheckPod check;
  std::string_view overrides = {};
};
// Baseline before restricted, then by name, then by release. Messages have this order.
std::span<const Check> AllChecks();

// All violations of a pod or of a workload's pod template. Releases after `newest_minor` count as
// `newest_minor`.
std::vector<Violation> Violations(LevelVersion policy, int newest_minor, api::Value metadata,
                                  api::Value spec);

// "host namespaces, privileged" and "host namespaces (hostNetwork=true), privileged (...)".
std::string Reasons(const std::vector<Violation>& violations);
std::string Details(const std::vector<Violation>& violations);

}  // namespace drakkar::apiserver::pod_security
