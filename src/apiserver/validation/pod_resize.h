#pragma once

#include "api/meta/field_error.h"
#include "api/tree/value.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::apiserver {

// What a resize (KEP-1287) may change of a pod: cpu and memory of containers, and of the pod as a
// whole and the size of volumes in memory where their gates are on. Everything else that the
// request would change is refused, also where Kubernetes passes it over: an answer without an error
// says that the resize will be done.
api::FieldErrors ValidatePodResize(api::Value pod, api::Value before, const FeatureGates& gates);

}  // namespace drakkar::apiserver
