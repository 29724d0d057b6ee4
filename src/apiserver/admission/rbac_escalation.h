#pragma once

#include "apiserver/auth/rbac.h"
#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// Prevents privilege escalation: a role may contain only rules that its author has (or the author
// may "escalate"), a binding may refer only to roles whose rules its author has (or may "bind").
class RbacEscalation final : public AdmissionStep {
 public:
  // `rbac` must outlive the step.
  explicit RbacEscalation(RbacAuthorizer& rbac) : rbac_(rbac) {}
  std::string_view name() const override { return "RBACEscalation"; }
  bool Concerns(const Request& request) const override;
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override;

 private:
  RbacAuthorizer& rbac_;
};

}  // namespace drakkar::apiserver
