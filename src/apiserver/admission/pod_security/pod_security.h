#pragma once

#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// The Pod Security levels that namespaces ask for with their labels pod-security.kubernetes.io/...:
// pods that violate the enforced level are refused, those that violate the others are logged (we
// have no audit log) or warned about. Objects that make pods are only warned about, since their
// pods come here as well. Invalid labels are refused. Raising the
// enforced level warns about pods that would violate it: at most 3000 pods, for at most 25 ms.
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
