#pragma once

#include <string>

#include "allocator/allocator.h"
#include "allocator/testing/brute_force.h"
#include "allocator/testing/random_problem.h"
#include "allocator/testing/simple_expressions.h"

namespace drakkar::allocator {

// An allocator with its own inventory and allocations.
struct Harness {
  explicit Harness(const Features& features, bool reuse = true)
      : allocator({.inventory = inventory,
                   .allocated = allocated,
                   .compiler = compiler,
                   .random = random,
                   .features = features,
                   .reuse_answers = reuse}) {}
  explicit Harness(const RandomProblem& problem) : Harness(problem.features) {
    for (const auto& slice : problem.slices) inventory.SetSlice(slice);
    for (const auto& allocation : problem.allocated) allocated.Add(allocation);
    for (const auto& node : problem.nodes) allocator.SetNode(node);
  }

  Problem Prepare(const RandomProblem& problem) {
    std::vector<std::shared_ptr<const device::Claim>> claims(problem.claims.begin(),
                                                             problem.claims.end());
    return allocator.Prepare(claims, LookupIn(problem));
  }

  // Returns the answer in the form of the brute-force search.
  BruteForceAnswer Solve(const RandomProblem& problem, const std::string& node) {
    const Problem prepared = Prepare(problem);
    return Flatten(prepared, allocator.Allocate(prepared, node, {}));
  }

  static BruteForceAnswer Flatten(const Problem& problem, const Result<Outcome>& outcome) {
    if (!outcome.ok()) return {BruteForceAnswer::Kind::kFatal, {}};
    const auto* allocation = std::get_if<Allocation>(&*outcome);
    if (allocation == nullptr) return {BruteForceAnswer::Kind::kDoesNotFit, {}};
    BruteForceAnswer answer{BruteForceAnswer::Kind::kFits, {}};
    for (std::size_t c = 0; c < allocation->results.size(); ++c) {
      for (const device::DeviceResult& result : allocation->results[c].results) {
        answer.solution.push_back(problem.claims[c]->name + "/" + result.request + " " +
                                  result.id.ToString());
      }
    }
    return answer;
  }

  device::Inventory inventory;
  device::AllocatedState allocated;
  SimpleExpressions compiler;
  SeededRandom random{7};
  Allocator allocator;
};

}  // namespace drakkar::allocator
