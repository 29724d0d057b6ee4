#include "apiserver/registry/admission_strategies.h"

#include "apiserver/validation/admission_policy.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::Value;

template <FieldErrors (*kValidate)(Value)>
class CheckedStrategy final : public Strategy {
 public:
  bool StatusUpdateKeepsMetadata() const override { return false; }
  FieldErrors Validate(Value object, const StrategyContext&) const override {
    return kValidate(object);
  }
  FieldErrors ValidateUpdate(Value object, Value before, std::string_view subresource,
                             const StrategyContext&) const override {
    // An unchanged policy is not compiled again.
    if (subresource == "status" || (api::Equal(object["spec"], before["spec"]) &&
                                    api::Equal(object["webhooks"], before["webhooks"]))) {
      return {};
    }
    return kValidate(object);
  }
};

}  // namespace

const Strategy* AdmissionStrategyFor(std::string_view group, std::string_view kind) {
  static const CheckedStrategy<ValidateValidatingPolicy> policy;
  static const CheckedStrategy<ValidateValidatingPolicyBinding> binding;
  static const CheckedStrategy<ValidateMutatingPolicy> mutating;
  static const CheckedStrategy<ValidateMutatingPolicyBinding> mutating_binding;
  static const CheckedStrategy<ValidateWebhookConfiguration> webhooks;
  if (group != "admissionregistration.k8s.io") return nullptr;
  if (kind == "ValidatingAdmissionPolicy") return &policy;
  if (kind == "ValidatingAdmissionPolicyBinding") return &binding;
  if (kind == "MutatingAdmissionPolicy") return &mutating;
  if (kind == "MutatingAdmissionPolicyBinding") return &mutating_binding;
  if (kind == "ValidatingWebhookConfiguration" || kind == "MutatingWebhookConfiguration") {
    return &webhooks;
  }
  return nullptr;
}

}  // namespace drakkar::apiserver
