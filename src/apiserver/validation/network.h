#pragma once

#include "api/meta/field_error.h"
#include "api/tree/value.h"

// Ingresses, IngressClasses and NetworkPolicies. Rules about a single
// field are in schema/. On update, `before` is the current object.
namespace drakkar::apiserver {

api::FieldErrors ValidateNetworkPolicy(api::Value policy, api::Value before);
api::FieldErrors ValidateIngress(api::Value ingress, api::Value before);
api::FieldErrors ValidateIngressStatus(api::Value ingress);
api::FieldErrors ValidateIngressClass(api::Value ingress_class);

}  // namespace drakkar::apiserver
