#include "allocator/search/search_space.h"

namespace drakkar::allocator {
namespace {

bool HasBindingConditions(const NodeIndex::Entry& entry) {
  for (const auto& pool : entry.pools) {
    if (pool->has_binding_conditions) return true;
  }
  return false;
}

}  // namespace

SearchSpace::SearchSpace(const NodeIndex::Entry& entry) : node(&entry) {
  std::size_t count = 0;
  for (const auto& pool : entry.pools) count += pool->devices.size();
  devices.reserve(count);
  const bool binding = HasBindingConditions(entry);
  for (const bool with_conditions : {false, true}) {
    if (with_conditions && !binding) break;
    for (std::uint32_t ordinal = 0; ordinal < entry.pools.size(); ++ordinal) {
      PoolView* pool = entry.pools[ordinal].get();
      for (std::uint32_t i = 0; i < pool->devices.size(); ++i) {
        const bool has =
            pool->has_binding_conditions && !pool->devices[i].device->binding_conditions.empty();
        if (has == with_conditions) devices.push_back({pool, ordinal, i});
      }
    }
  }
}

std::vector<SpaceDevice> DevicesOf(const NodeIndex::Entry& node, const std::vector<Pick>& picks) {
  std::vector<SpaceDevice> devices;
  devices.reserve(picks.size());
  if (HasBindingConditions(node)) {
    const SearchSpace space(node);
    for (const Pick& pick : picks) devices.push_back(space.devices[pick.device]);
    return devices;
  }
  for (const Pick& pick : picks) {
    std::uint32_t ordinal = 0;
    std::uint32_t index = pick.device;
    while (index >= node.pools[ordinal]->devices.size()) {
      index -= static_cast<std::uint32_t>(node.pools[ordinal++]->devices.size());
    }
    devices.push_back({node.pools[ordinal].get(), ordinal, index});
  }
  return devices;
}

}  // namespace drakkar::allocator
