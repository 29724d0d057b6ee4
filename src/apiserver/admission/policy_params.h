#pragma once

#include <string>
#include <vector>

#include "apiserver/policy/admission_policy_base.h"
#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// The objects that a binding passes as `params`, one evaluation each. Null: no parameters.
struct PolicyParams {
  std::vector<api::ObjectPtr> list;
  std::string error;         // of the binding
  std::string policy_error;  // of the policy
};
PolicyParams FindPolicyParams(const AdmissionPolicy& policy, const api::Object& binding,
                              const Request& request, const StrategyContext& context,
                              const Core& core);

}  // namespace drakkar::apiserver
