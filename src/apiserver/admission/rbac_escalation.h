#pragma once

#include "apiserver/auth/rbac.h"
#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// Nobody grants what they do not hold: roles may have only rules their author has (or the author
// may "escalate"), bindings only roles whose rules their author has (or may "bind").
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
