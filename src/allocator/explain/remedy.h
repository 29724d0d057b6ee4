#pragma once

#include <string>
#include <vector>

#include "allocator/explain/explanation.h"
#include "allocator/request/problem.h"
#include "allocator/search/search_space.h"

namespace drakkar::allocator {

// What to change so that `rule` no longer stands in the way of the problem on this node: fields of
// the claim, its class or a slice, a gate, or devices to set free; most telling first, at most
// kMaxRemedies. `explanation` has its claims already.
inline constexpr std::size_t kMaxRemedies = 4;
std::vector<std::string> FindRemedies(Rule rule, const Problem& problem, const SearchSpace& space,
                                      const Explanation& explanation);

}  // namespace drakkar::allocator
