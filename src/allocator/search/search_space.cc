#include "allocator/search/search_space.h"

namespace drakkar::allocator {

SearchSpace::SearchSpace(const NodeIndex::Entry& entry) : node(&entry) {
  std::size_t count = 0;
  bool binding = false;
  for (const auto& pool : entry.pools) {
    count += pool->devices.size();
    binding = binding || pool->has_binding_conditions;
  }
  devices.reserve(count);
  for (const bool with_conditions : {false, true}) {
    if (with_conditions && !binding) break;
    for (std::uint32_t ordinal = 0; ordinal < entry.pools.size(); ++ordinal) {
      PoolView* pool = entry.pools[ordinal].get();
      for (std::uint32_t i = 0; i < pool->devices.size(); ++i) {
        const bool has = !pool->devices[i].device->binding_conditions.empty();
        if (has == with_conditions) devices.push_back({pool, ordinal, i});
      }
    }
  }
}

}  // namespace drakkar::allocator
