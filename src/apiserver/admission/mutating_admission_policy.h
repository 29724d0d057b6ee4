#pragma once

#include "apiserver/admission/policy_set.h"
#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

class RbacAuthorizer;

// Applies MutatingAdmissionPolicies, after all other steps that change objects and before webhooks.
// If one changes the object, the steps run a second time, and with them those policies before it
// whose reinvocationPolicy is IfNeeded.
class MutatingAdmissionPolicyStep final : public AdmissionStep {
 public:
  explicit MutatingAdmissionPolicyStep(MutatingPolicySet& policies, RbacAuthorizer* rbac = nullptr)
      : policies_(policies), rbac_(rbac) {}

  std::string_view name() const override { return "MutatingAdmissionPolicy"; }
  bool Concerns(const Request& request) const override {
    return !request.skips_policies && !policies_.For(*request.kind).empty();
  }
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override;

 private:
  struct Run;

  MutatingPolicySet& policies_;
  RbacAuthorizer* const rbac_;
};

}  // namespace drakkar::apiserver
