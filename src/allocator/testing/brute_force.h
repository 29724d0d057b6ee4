#pragma once

#include <optional>
#include <string>
#include <vector>

#include "allocator/testing/random_problem.h"

namespace drakkar::allocator {

// One line per device: "claim/request[/sub] driver/pool/device".
using FlatSolution = std::vector<std::string>;

// Tries every combination of devices in the documented order and checks each from scratch against
// every rule. Follows the wording of the specification and is slow. nullopt if there is no solution
// on the node. Shares no code with the search.
struct BruteForceAnswer {
  enum class Kind { kFits, kDoesNotFit, kFatal };
  Kind kind = Kind::kDoesNotFit;
  FlatSolution solution;
};
BruteForceAnswer SolveByBruteForce(const RandomProblem& problem, const device::Node& node);

}  // namespace drakkar::allocator
