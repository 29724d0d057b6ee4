#pragma once

#include <cstdint>
#include <vector>

#include "allocator/features.h"
#include "allocator/request/plan.h"
#include "allocator/search/search_space.h"

namespace drakkar::allocator {

// Numbers the devices of a space so that devices with the same number are interchangeable in any
// solution of the plan: every alternative selects both or neither, every constraint sees the same
// values, and every ledger charges the same amounts.
//
// A counter that suffices for all of its consumers together never rejects one, so it does not make
// devices different. With admin access a device may be counted twice, so then all counters matter.
std::vector<std::uint32_t> FindSymmetry(Plan& plan, const ShapeTable& shapes,
                                        const SearchSpace& space, const Features& features,
                                        bool any_admin);

}  // namespace drakkar::allocator
