#pragma once

#include <optional>
#include <string>
#include <vector>

#include "allocator/explain/explanation.h"
#include "base/result/result.h"
#include "scheduler/simulation.h"

namespace drakkar::scheduler {

// What the scheduler would do with a pod, node by node: its plugins, gates and profile over the
// objects of a cluster, nothing written. The one header of the scheduler that the client uses
// (docs/decisions/explain-in-the-client.md).

// Why one plugin keeps the pod from a node.
struct NodeRefusal {
  std::string plugin;                // "Node" if none does, but the node is dead
  std::vector<std::string> reasons;  // as FailedScheduling words them
};

struct NodeExplanation {
  std::string node;
  std::vector<NodeRefusal> refusals;  // by all plugins, not only the first; none: it fits
  // Conditions of devices that would be waited for before the pod is bound (KEP-5007).
  std::vector<std::string> waits_for;
  // Rule by rule, for claims that are not allocated yet.
  std::optional<allocator::Explanation> devices;

  bool fits() const { return refusals.empty(); }
};

struct PodExplanation {
  // Why no node is looked at: the pod is gated, or something is wrong with its claims. Empty: none.
  std::string blocked;
  std::vector<NodeExplanation> nodes;  // by name

  bool FitsSomewhere() const;
};

// An error is something that went wrong, not a pod that does not fit.
Result<PodExplanation> ExplainPod(const Simulation& simulation, SimulationOptions options);

}  // namespace drakkar::scheduler
