#pragma once

#include <vector>

#include "allocator/features.h"
#include "allocator/request/problem.h"
#include "allocator/view/node_index.h"
#include "base/env/random.h"
#include "device/allocation.h"

namespace drakkar::allocator {

// Turns the picks of a search into allocation results, one per claim and in their order. Share ids
// come from `random`. Fails on a slice whose node selector has several terms, which validation does
// not admit.
Result<std::vector<device::AllocationResult>> BuildResults(
    const Problem& problem, const NodeIndex::Entry& node, const Features& features,
    const std::vector<Pick>& picks, const std::vector<std::uint32_t>& chosen, Random& random);

}  // namespace drakkar::allocator
