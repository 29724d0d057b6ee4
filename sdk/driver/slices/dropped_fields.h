#pragma once

#include <string>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::driver {

// The features whose fields a server left out when it stored `sent` as `stored` (both a slice's
// spec), by the name of their gate, in a fixed order; "unknown" for a difference that none of them
// explains. Empty if nothing is missing.
std::vector<std::string> DroppedFeatures(api::Value sent, api::Value stored);

// Where they are, "spec.devices[3].taints", outermost first; no more than kMaxDroppedPaths.
constexpr std::size_t kMaxDroppedPaths = 8;
std::vector<std::string> DroppedPaths(api::Value sent, api::Value stored);

}  // namespace drakkar::driver
