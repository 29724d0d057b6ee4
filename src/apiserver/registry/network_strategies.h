#pragma once

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// Kinds of networking.k8s.io and autoscaling with defaults that depend on other fields; null for
// the rest, whose descriptions say all.
const Strategy* NetworkStrategyFor(std::string_view group, std::string_view kind);

}  // namespace drakkar::apiserver
