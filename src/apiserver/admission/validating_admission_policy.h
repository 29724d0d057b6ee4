#pragma once

#include "apiserver/admission/policy_set.h"
#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

class RbacAuthorizer;

// Evaluates ValidatingAdmissionPolicies, after validation. A binding decides whether a violation
// rejects the request, warns the client or is logged.
class ValidatingAdmissionPolicyStep final : public AdmissionStep {
 public:
  // Without `rbac`, no path is permitted to anyone.
  explicit ValidatingAdmissionPolicyStep(PolicySet& policies, RbacAuthorizer* rbac = nullptr)
      : policies_(policies), rbac_(rbac) {}

  std::string_view name() const override { return "ValidatingAdmissionPolicy"; }
  bool Concerns(const Request& request) const override {
    return !policies_.For(*request.kind).empty();
  }
  bool comes_after_validation() const override { return true; }
  std::optional<Failure> Check(const Request& request, api::Value object, api::Value before,
                               const StrategyContext& context,
                               std::vector<std::string>& warnings) override;

 private:
  PolicySet& policies_;
  RbacAuthorizer* const rbac_;
};

}  // namespace drakkar::apiserver
