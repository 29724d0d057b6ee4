#pragma once

#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// Enforces the Pod Security levels that namespaces set with labels pod-security.kubernetes.io/...:
// pods that violate the enforced level are rejected; violations of the other levels are logged (we
// have no audit log) or returned as warnings. Workloads only get warnings, since their pods are
// checked as well. Invalid labels are rejected. Raising the enforced level warns about existing
// pods that would violate it: at most 3000 pods, for at most 25 ms.
class PodSecurity final : public AdmissionStep {
 public:
  std::string_view name() const override { return "PodSecurity"; }
  bool Concerns(const Request& request) const override;
  bool comes_after_validation() const override { return true; }
  std::optional<Failure> Check(const Request& request, api::Value object, api::Value before,
                               const StrategyContext& context,
                               std::vector<std::string>& warnings) override;
};

}  // namespace drakkar::apiserver
