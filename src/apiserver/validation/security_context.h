#pragma once

#include <string>
#include <string_view>

#include "api/meta/field_error.h"
#include "api/tree/value.h"

// securityContext of pods and containers.
namespace drakkar::apiserver {

// `spec_path` is the path of the pod's spec.
void CheckPodSecurityContext(api::FieldErrors& errors, const api::FieldPath& spec_path,
                             api::Value spec);
// `host_users`: the pod is in the host's user namespace.
void CheckContainerSecurityContext(api::FieldErrors& errors, const api::FieldPath& path,
                                   api::Value context, bool host_users);
// What spec.os.name allows, and containers that are processes of a Windows host.
void CheckOperatingSystem(api::FieldErrors& errors, const api::FieldPath& spec_path,
                          api::Value spec);
// Annotations from before seccompProfile and appArmorProfile existed.
void CheckProfileAnnotations(api::FieldErrors& errors, api::Value metadata, api::Value spec);

}  // namespace drakkar::apiserver
