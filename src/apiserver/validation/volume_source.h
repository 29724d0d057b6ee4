#pragma once

#include <string_view>

#include "api/meta/field_error.h"
#include "api/tree/value.h"

// Where a volume's contents come from: the fields of a pod's volume and of a PersistentVolume's
// spec, of which exactly one is set.
namespace drakkar::apiserver {

// A volume of a pod. `pod` is the pod's name; empty in a template, whose pods have no name yet.
void CheckVolumeSource(api::FieldErrors& errors, const api::FieldPath& path, api::Value volume,
                       std::string_view pod);
// The source in the spec of the PersistentVolume `name`.
void CheckPersistentSource(api::FieldErrors& errors, const api::FieldPath& path, api::Value spec,
                           std::string_view name);

}  // namespace drakkar::apiserver
