#pragma once

#include <optional>
#include <string_view>

#include "api/meta/field_error.h"
#include "api/tree/value.h"

// Probes and lifecycle hooks of containers.
namespace drakkar::apiserver {

// What handlers depend on besides themselves.
struct HandlerContext {
  std::optional<std::int64_t> grace_seconds;  // of the pod
  std::string_view os;                        // spec.os.name; empty if it is not set
};

// livenessProbe, readinessProbe and startupProbe of a container.
void CheckProbes(api::FieldErrors& errors, const api::FieldPath& path, api::Value container);
void CheckLifecycle(api::FieldErrors& errors, const api::FieldPath& path, api::Value lifecycle,
                    const HandlerContext& context);

}  // namespace drakkar::apiserver
