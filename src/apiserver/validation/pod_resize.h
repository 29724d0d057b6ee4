#pragma once

#include "api/meta/field_error.h"
#include "api/tree/value.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::apiserver {

// Validates a resize (KEP-1287): it may change cpu and memory of containers and, if their gates are
// on, of the pod as a whole and the size of memory volumes. Any other change is rejected, even
// where Kubernetes ignores it: a response without an error means that the resize will be done.
api::FieldErrors ValidatePodResize(api::Value pod, api::Value before, const FeatureGates& gates);

}  // namespace drakkar::apiserver
