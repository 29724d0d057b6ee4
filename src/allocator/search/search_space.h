#pragma once

#include <cstdint>
#include <vector>

#include "allocator/request/plan.h"
#include "allocator/view/node_index.h"
#include "allocator/view/pool_view.h"

namespace drakkar::allocator {

struct SpaceDevice {
  PoolView* pool;
  std::uint32_t pool_ordinal;
  std::uint32_t index;  // index in the pool

  const ViewDevice& view() const { return pool->devices[index]; }
  device::DeviceId id() const { return {pool->id.driver, pool->id.pool, view().device->name}; }
};

// The devices of one node in search order: those without binding conditions first, across all pools
// (KEP-5007; Kubernetes does so within each pool), then by pool, slice name and position in the
// slice.
struct SearchSpace {
  explicit SearchSpace(const NodeIndex::Entry& node);

  const NodeIndex::Entry* node;
  std::vector<SpaceDevice> devices;
};

// The devices at the positions of `picks`, one for each, in the order of a SearchSpace.
std::vector<SpaceDevice> DevicesOf(const NodeIndex::Entry& node, const std::vector<Pick>& picks);

}  // namespace drakkar::allocator
