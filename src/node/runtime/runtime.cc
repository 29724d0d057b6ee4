#include "node/runtime/runtime.h"

namespace drakkar::node {

std::string_view ContainerStateName(ContainerState state) {
  switch (state) {
    case ContainerState::kCreated:
      return "created";
    case ContainerState::kRunning:
      return "running";
    case ContainerState::kExited:
      return "exited";
    case ContainerState::kUnknown:
      return "unknown";
  }
  return "unknown";
}

}  // namespace drakkar::node
