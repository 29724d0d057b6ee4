#pragma once

#include "api/meta/field_error.h"
#include "api/tree/value.h"

// Files in volumes that the node writes: from ConfigMaps, Secrets, fields of the pod, tokens,
// certificates.
namespace drakkar::apiserver {

void CheckProjectedVolume(api::FieldErrors& errors, const api::FieldPath& path, api::Value volume);
// defaultMode and defaultUser.
void CheckFileOwner(api::FieldErrors& errors, const api::FieldPath& path, api::Value volume);
// Which keys of a ConfigMap or Secret become which files.
void CheckKeysToPaths(api::FieldErrors& errors, const api::FieldPath& path, api::Value items);
// A file with a field of the pod. Errors are about `path`, which is that of the volume.
void CheckDownwardFile(api::FieldErrors& errors, const api::FieldPath& path, api::Value file);

// A field of the pod, as the value of a variable or of a file. Some are only for one of the two.
enum class FieldUse : bool { kVariable, kFile };
void CheckFieldSelector(api::FieldErrors& errors, const api::FieldPath& path, api::Value selector,
                        FieldUse use);
void CheckResourceSelector(api::FieldErrors& errors, const api::FieldPath& path,
                           api::Value selector, FieldUse use);

}  // namespace drakkar::apiserver
