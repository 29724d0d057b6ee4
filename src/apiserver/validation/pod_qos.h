#pragma once

#include <string_view>

#include "api/tree/value.h"

namespace drakkar::apiserver {

// "Guaranteed", "Burstable" or "BestEffort", from the containers' cpu and memory.
std::string_view QosClass(api::Value spec);

}  // namespace drakkar::apiserver
