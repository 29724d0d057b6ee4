#pragma once

#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// Whether a request may create a pod: an apply or an update may be a create. The steps below look
// at these requests.
bool IsForNewPod(const Request& request);

// Sets spec.priority and preemptionPolicy from the pod's PriorityClass. Pods without one get the
// global default class, or 0.
class PriorityAdmission final : public AdmissionStep {
 public:
  std::string_view name() const override { return "Priority"; }
  bool Concerns(const Request& request) const override { return IsForNewPod(request); }
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override;
};

// Pods tolerate a node that is not ready or unreachable for kSeconds, unless they say otherwise.
class DefaultTolerationSeconds final : public AdmissionStep {
 public:
  static constexpr std::int64_t kSeconds = 300;
  std::string_view name() const override { return "DefaultTolerationSeconds"; }
  bool Concerns(const Request& request) const override { return IsForNewPod(request); }
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override;
};

// The RuntimeClass of a new pod must exist. Its overhead, node selector and tolerations become the
// pod's.
class RuntimeClassAdmission final : public AdmissionStep {
 public:
  std::string_view name() const override { return "RuntimeClass"; }
  bool Concerns(const Request& request) const override { return IsForNewPod(request); }
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override;
};

}  // namespace drakkar::apiserver
