#pragma once

#include <memory>
#include <string>
#include <vector>

#include "allocator/features.h"
#include "allocator/request/problem.h"
#include "base/env/random.h"
#include "device/allocation.h"
#include "device/claim.h"
#include "device/slice.h"

namespace drakkar::allocator {

// A small random allocation problem with several pools and nodes, selectors, constraints, taints,
// counters, groups, shares and alternatives. Expressions are SimpleExpressions. A request for all
// devices has no constraint, and no selector fails: both would make the choice between "does not
// fit" and "fatal" depend on the order of the search.
struct RandomProblem {
  Features features;
  std::vector<device::Node> nodes;
  std::vector<std::shared_ptr<device::Slice>> slices;
  std::vector<std::shared_ptr<device::DeviceClass>> classes;
  std::vector<std::shared_ptr<device::Claim>> claims;
  std::vector<device::AllocationResult> allocated;
};

RandomProblem MakeRandomProblem(Random& random);

ClassLookup LookupIn(const RandomProblem& problem);

}  // namespace drakkar::allocator
