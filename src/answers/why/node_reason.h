#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/device_id.h"
#include "scheduler/explain.h"

namespace drakkar::answers {

// The main reason why a node rejects a pod.
struct NodeReason {
  std::string text;  // "full", "short by 4 devices", "wrong class", "cordoned"
  // For a request with too few devices: how many are missing, and which suitable devices others
  // hold.
  std::size_t missing = 0;
  std::vector<device::DeviceId> held;
  std::string claim;  // the claim and request that lack devices, or empty
  std::string request;
  std::size_t candidates = 0;  // free devices for that request
  // Only devices are missing, and releasing `held` may be enough.
  bool only_held = false;
};

// The pod must not fit the node of `explanation`.
NodeReason ClassifyNode(const scheduler::NodeExplanation& explanation);

}  // namespace drakkar::answers
