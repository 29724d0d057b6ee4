#pragma once

#include <cstdint>
#include <vector>

#include "allocator/features.h"
#include "allocator/request/plan.h"
#include "allocator/search/search_space.h"

namespace drakkar::allocator {

// Numbers the devices of a space so that devices with the same number can stand for each other in
// any solution of the plan: every alternative selects both or neither, every constraint sees the
// same values, and they weigh the same in every ledger.
//
// A counter that suffices for all its possible consumers together can never refuse anybody and
// does not tell devices apart; with admin access, which may count a device twice, all count.
std::vector<std::uint32_t> FindSymmetry(Plan& plan, const ShapeTable& shapes,
                                        const SearchSpace& space, const Features& features,
                                        bool any_admin);

}  // namespace drakkar::allocator
