#pragma once

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// Kinds of networking.k8s.io and autoscaling with defaults that depend on other fields. Null for
// all other kinds, whose rules are all in schema/.
const Strategy* NetworkStrategyFor(std::string_view group, std::string_view kind);

}  // namespace drakkar::apiserver
