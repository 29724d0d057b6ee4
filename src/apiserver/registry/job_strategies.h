#pragma once

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// The kinds of batch/v1; null for any other kind.
const Strategy* BatchStrategyFor(std::string_view kind);

}  // namespace drakkar::apiserver
