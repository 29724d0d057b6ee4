#pragma once

#include <string>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::driver {

// The features whose fields a server dropped when it stored `sent` as `stored` (both are slice
// specs), by gate name in a fixed order; "unknown" for differences that none of them explains.
// Empty if nothing was dropped.
std::vector<std::string> DroppedFeatures(api::Value sent, api::Value stored);

// The paths of the dropped fields, "spec.devices[3].taints", outermost first; at most
// kMaxDroppedPaths.
constexpr std::size_t kMaxDroppedPaths = 8;
std::vector<std::string> DroppedPaths(api::Value sent, api::Value stored);

}  // namespace drakkar::driver
