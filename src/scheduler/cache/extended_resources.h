#pragma once

#include <string_view>

#include "scheduler/cache/device_state.h"
#include "scheduler/cache/node_table.h"

namespace drakkar::scheduler {

// Whether a pod on this node gets the extended resource as devices of a class, because the node
// does not offer it itself (KEP-5004).
inline bool IsGivenAsDevices(const NodeTable& nodes, const DeviceState& devices, NodeIndex node,
                             std::string_view resource) {
  return devices.FindClassOf(resource) != nullptr && nodes.AllocatableOf(node, resource) == 0;
}

}  // namespace drakkar::scheduler
