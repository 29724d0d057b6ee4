#pragma once

#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// Pods run as the service account "default" unless they say otherwise; the account must exist. Each
// container gets a token of it, the cluster's CA and the namespace under
// /var/run/secrets/kubernetes.io/serviceaccount, unless pod or account switch that off. Pods
// without imagePullSecrets get the account's. An account annotated
// kubernetes.io/enforce-mountable-secrets lets its pods name no secrets but its own.
//
// A pod in a new namespace waits a moment for the account "default" (see AdmissionStep::Awaits).
class ServiceAccountAdmission final : public AdmissionStep {
 public:
  // A second longer than an hour's refresh would need, as in Kubernetes: such tokens are recognised
  // by it.
  static constexpr std::int64_t kTokenSeconds = 3607;

  std::string_view name() const override { return "ServiceAccount"; }
  bool Concerns(const Request& request) const override;
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override;
  std::optional<Awaited> Awaits(const Request& request, api::Draft& object,
                                const StrategyContext& context) const override;
};

}  // namespace drakkar::apiserver
