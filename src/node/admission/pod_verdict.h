#pragma once

#include <string>

namespace drakkar::node {

// Why the node rejected or stopped a pod: status.reason and status.message.
struct PodVerdict {
  std::string reason;
  std::string message;
  // The node ended the pod to protect itself: sets the condition DisruptionTarget.
  bool is_disruption = false;
};

}  // namespace drakkar::node
