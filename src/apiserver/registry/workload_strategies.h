#pragma once

#include "apiserver/registry/strategy.h"

// The kinds of apps/v1, ReplicationController and PodTemplate: defaults of the pod template, and
// rules about selector, strategy and status. Rules about a single field are in schema/.
namespace drakkar::apiserver {

// Null for any other kind.
const Strategy* WorkloadStrategyFor(std::string_view group, std::string_view kind);

}  // namespace drakkar::apiserver
