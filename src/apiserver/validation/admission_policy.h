#pragma once

#include "api/meta/field_error.h"
#include "api/tree/value.h"

// The rules of admissionregistration.k8s.io, with Kubernetes' wording. Defaults and enumerations
// are in schema/.
namespace drakkar::apiserver {

api::FieldErrors ValidateValidatingPolicy(api::Value policy);
api::FieldErrors ValidateValidatingPolicyBinding(api::Value binding);
api::FieldErrors ValidateMutatingPolicy(api::Value policy);
api::FieldErrors ValidateMutatingPolicyBinding(api::Value binding);
// A ValidatingWebhookConfiguration or MutatingWebhookConfiguration.
api::FieldErrors ValidateWebhookConfiguration(api::Value configuration);

}  // namespace drakkar::apiserver
