#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "answers/cluster/snapshot.h"
#include "api/tree/value.h"
#include "base/result/result.h"
#include "scheduler/simulation.h"

namespace drakkar::answers {

// How many more claims of one kind the cluster could serve, and where.
struct FitsAnswer {
  struct Node {
    std::string name;
    std::size_t count = 0;
  };
  std::string claim;  // its name
  std::size_t total = 0;
  bool at_least = false;    // counting stopped at `kMaxFits`
  std::vector<Node> nodes;  // most first; none with zero
  std::string why_none;     // if no node was even looked at
  std::vector<std::string> notes;
};

inline constexpr std::size_t kMaxFits = 100'000;

// Allocates `claim` (a ResourceClaim or ResourceClaimTemplate, as written) again and again, node by
// node, until nothing is left: what the scheduler's own allocator finds on nodes that its other
// plugins do not refuse to a pod with nothing but the claim. CPU, memory and the number of pods are
// not counted.
Result<FitsAnswer> CountFits(const Snapshot& snapshot, api::Value claim,
                             scheduler::SimulationOptions options);

// A pod that asks for nothing but the claim.
api::ObjectPtr PodForClaim(std::string_view ns, std::string_view claim_name,
                           std::string_view claim_uid);

}  // namespace drakkar::answers
