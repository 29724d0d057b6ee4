#pragma once

#include "api/meta/field_error.h"
#include "api/tree/value.h"

namespace drakkar {
class FeatureGates;
}

// Rules for the fields of a pod's spec that say where it may run.
namespace drakkar::apiserver {

void CheckTolerations(api::FieldErrors& errors, const api::FieldPath& path, api::Value tolerations,
                      const FeatureGates& gates);
void CheckAffinity(api::FieldErrors& errors, const api::FieldPath& path, api::Value affinity);
// topologySpreadConstraints.
void CheckSpreadConstraints(api::FieldErrors& errors, const api::FieldPath& path,
                            api::Value constraints);

// What may change about a pod that scheduling gates hold back: nodeSelector and the required node
// affinity may become narrower.
void CheckNodeSelectorChange(api::FieldErrors& errors, const api::FieldPath& path, api::Value now,
                             api::Value before);
void CheckNodeAffinityChange(api::FieldErrors& errors, const api::FieldPath& path, api::Value now,
                             api::Value before);

}  // namespace drakkar::apiserver
