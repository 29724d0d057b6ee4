#pragma once

#include <string>
#include <vector>

#include "allocator/explain/explanation.h"
#include "allocator/request/problem.h"
#include "allocator/search/search_space.h"

namespace drakkar::allocator {

// What to change so that `rule` no longer rejects the claims on this node: fields of the claim, its
// class or a slice, a feature gate, or devices to free. Most useful first, at most kMaxRemedies.
// The claims of `explanation` must be filled in.
inline constexpr std::size_t kMaxRemedies = 4;
std::vector<std::string> FindRemedies(Rule rule, const Problem& problem, const SearchSpace& space,
                                      const Explanation& explanation);

}  // namespace drakkar::allocator
