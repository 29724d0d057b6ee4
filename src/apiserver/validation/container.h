#pragma once

#include <map>
#include <set>
#include <string_view>

#include "api/meta/field_error.h"
#include "api/tree/value.h"
#include "apiserver/validation/container_handler.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::apiserver {

// What the rules for containers read of the pod they are in.
struct ContainerContext {
  const FeatureGates& gates;
  std::set<std::string_view> claims;               // names of spec.resourceClaims
  std::map<std::string_view, api::Value> volumes;  // valid ones, by name
  api::Value declared;                             // spec.volumes
  HandlerContext handlers;
  bool never_restarts = false;  // restartPolicy: Never
  bool host_users = true;       // the pod is in the host's user namespace
};

// spec.containers, spec.initContainers and spec.ephemeralContainers. Names are unique among all of
// them.
void CheckContainers(api::FieldErrors& errors, const api::FieldPath& spec_path, api::Value spec,
                     const ContainerContext& context);
void CheckInitContainers(api::FieldErrors& errors, const api::FieldPath& spec_path, api::Value spec,
                         const ContainerContext& context);
void CheckEphemeralContainers(api::FieldErrors& errors, const api::FieldPath& spec_path,
                              api::Value spec, const ContainerContext& context);

}  // namespace drakkar::apiserver
