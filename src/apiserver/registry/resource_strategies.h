#pragma once

#include <string_view>

#include "apiserver/registry/strategy.h"

// The kinds of resource.k8s.io: defaults, fields of disabled gates, generation, status and spec,
// permissions that depend on the change. The validation rules are in validation/.
namespace drakkar::apiserver {

// The strategy of a kind of resource.k8s.io; null for any other name.
const Strategy* ResourceStrategyFor(std::string_view kind);

}  // namespace drakkar::apiserver
