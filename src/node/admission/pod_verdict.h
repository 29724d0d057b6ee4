#pragma once

#include <string>

namespace drakkar::node {

// Why the node rejected or stopped a pod: status.reason and status.message.
struct PodVerdict {
  std::string reason;
  std::string message;
};

}  // namespace drakkar::node
