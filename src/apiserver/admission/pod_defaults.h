#pragma once

#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// Whether a pod may come of it: an apply or an update may be a creation. What the steps below look
// at.
bool IsForNewPod(const Request& request);

// spec.priority and preemptionPolicy from the pod's PriorityClass; pods without one get the global
// default class, or 0.
class PriorityAdmission final : public AdmissionStep {
 public:
  std::string_view name() const override { return "Priority"; }
  bool Concerns(const Request& request) const override { return IsForNewPod(request); }
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override;
};

// The RuntimeClass that a new pod names must exist.
class RuntimeClassAdmission final : public AdmissionStep {
 public:
  std::string_view name() const override { return "RuntimeClass"; }
  bool Concerns(const Request& request) const override { return IsForNewPod(request); }
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override;
};

}  // namespace drakkar::apiserver
