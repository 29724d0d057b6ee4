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
    return !request.skips_policies && !policies_.For(*request.kind).empty();
  }
  bool comes_after_validation() const override { return true; }
  bool SeesActions() const override { return true; }
  std::optional<Failure> Check(const Request& request, api::Value object, api::Value before,
                               const StrategyContext& context,
                               std::vector<std::string>& warnings) override;

  std::optional<Failure> CheckAction(const Request& request, const Action& action,
                                     const StrategyContext& context,
                                     std::vector<std::string>& warnings) override;

 private:
  // `body` is the kind of the objects if it is not the request's, else null.
  std::optional<Failure> Evaluate(const Request& request, std::string_view operation,
                                  const api::KindSchema* body, api::Value object, api::Value before,
                                  const StrategyContext& context,
                                  std::vector<std::string>& warnings);

  PolicySet& policies_;
  RbacAuthorizer* const rbac_;
};

}  // namespace drakkar::apiserver
