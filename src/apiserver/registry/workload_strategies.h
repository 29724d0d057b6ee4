#pragma once

#include "apiserver/registry/strategy.h"

// The kinds of apps/v1, ReplicationController and PodTemplate: a template of a pod with its
// defaults, and rules about selector, strategy and status. What a field can state alone is in
// schema/.
namespace drakkar::apiserver {

// Null if the kind is none of these.
const Strategy* WorkloadStrategyFor(std::string_view group, std::string_view kind);

}  // namespace drakkar::apiserver
