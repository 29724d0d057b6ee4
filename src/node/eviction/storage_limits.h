#pragma once

#include <optional>

#include "api/tree/value.h"
#include "node/admission/pod_verdict.h"
#include "node/stats/usage_collector.h"

namespace drakkar::node {

// Whether the pod or one of its containers has a limit for ephemeral storage.
bool LimitsEphemeralStorage(api::Value pod);

// Why the pod must end: its containers' layers and logs, together with its emptyDirs on disk,
// exceed the pod's limit, or those of one container exceed the container's. Nothing if they do not,
// or were not measured.
std::optional<PodVerdict> ExceedsStorageLimit(api::Value pod, const NodeUsage& usage);

}  // namespace drakkar::node
