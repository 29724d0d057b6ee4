#pragma once

#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// Pods run as the service account "default" unless they name another; the account must exist. Each
// container gets a token of the account, the cluster's CA and the namespace under
// /var/run/secrets/kubernetes.io/serviceaccount, unless the pod or the account opts out. Pods
// without imagePullSecrets get the account's. The pods of an account annotated
// kubernetes.io/enforce-mountable-secrets may reference only the account's secrets.
//
// A pod in a new namespace waits briefly for the account "default" (see AdmissionStep::Awaits).
class ServiceAccountAdmission final : public AdmissionStep {
 public:
  // One hour and seven seconds, as in Kubernetes: the odd value marks such tokens.
  static constexpr std::int64_t kTokenSeconds = 3607;

  std::string_view name() const override { return "ServiceAccount"; }
  bool Concerns(const Request& request) const override;
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override;
  std::optional<Awaited> Awaits(const Request& request, api::Draft& object,
                                const StrategyContext& context) const override;
};

}  // namespace drakkar::apiserver
