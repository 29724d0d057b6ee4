#pragma once

#include <string>

#include "base/env/clock.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::apiserver {

class Core;
class Pki;

// The server's report about itself for `drakkar doctor` (GET /drakkar/status): its time and feature
// gates, when its certificates expire, and how many stored objects nothing acts on. JSON.
std::string SelfReport(const Core& core, const FeatureGates& gates, const Pki& pki, WallTime now);

}  // namespace drakkar::apiserver
