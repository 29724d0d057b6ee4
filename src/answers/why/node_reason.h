#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/device_id.h"
#include "scheduler/explain.h"

namespace drakkar::answers {

// The one reason to name for a node that refuses a pod.
struct NodeReason {
  std::string text;  // "full", "short by 4 devices", "wrong class", "cordoned"
  // Of a request with too few devices: how many are missing, and the devices that others hold and
  // that would do.
  std::size_t missing = 0;
  std::vector<device::DeviceId> held;
  std::string claim;  // the claim and the request that is short, or empty
  std::string request;
  std::size_t candidates = 0;  // free devices for that request
  // Only devices stand in the way, and letting go of `held` may be enough.
  bool only_held = false;
};

// `explanation` does not fit.
NodeReason ClassifyNode(const scheduler::NodeExplanation& explanation);

}  // namespace drakkar::answers
