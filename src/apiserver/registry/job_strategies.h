#pragma once

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// The kinds of batch/v1; null if the kind is none of these.
const Strategy* BatchStrategyFor(std::string_view kind);

}  // namespace drakkar::apiserver
