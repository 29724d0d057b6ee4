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
  std::string claim;  // name of the claim
  std::size_t total = 0;
  bool at_least = false;    // counting stopped at `kMaxFits`
  std::vector<Node> nodes;  // most fits first, without nodes that fit none
  std::string why_none;     // why no node was considered
  std::vector<std::string> notes;
};

inline constexpr std::size_t kMaxFits = 100'000;

// Allocates `claim` (a ResourceClaim or ResourceClaimTemplate, as written) repeatedly, node by
// node, until nothing is left. It uses the scheduler's own allocator, on nodes that the other
// plugins do not reject for a pod with only this claim. CPU, memory and the number of pods are not
// counted.
Result<FitsAnswer> CountFits(const Snapshot& snapshot, api::Value claim,
                             scheduler::SimulationOptions options);

// A pod that needs only the claim.
api::ObjectPtr PodForClaim(std::string_view ns, std::string_view claim_name,
                           std::string_view claim_uid);

}  // namespace drakkar::answers
