#pragma once

#include <optional>
#include <string>
#include <vector>

#include "allocator/explain/explanation.h"
#include "base/result/result.h"
#include "scheduler/simulation.h"

namespace drakkar::scheduler {

// Predicts, node by node, what the scheduler would do with a pod: runs its plugins, gates and
// profile over the objects of a cluster without writing anything. Used by the client as well
// (docs/decisions/explain-in-the-client.md).

// Why one plugin rejects a node.
struct NodeRefusal {
  std::string plugin;                // "Node" if no plugin rejects it but the node is not ready
  std::vector<std::string> reasons;  // worded as in FailedScheduling
};

struct NodeExplanation {
  std::string node;
  std::vector<NodeRefusal> refusals;  // of all plugins, not only the first; empty: the pod fits
  bool preferred = false;             // fits, and is one of those that the scheduler chooses from
  // Binding conditions that the pod would wait for (KEP-5007).
  std::vector<std::string> waits_for;
  // Rule by rule, for claims that are not allocated yet.
  std::optional<allocator::Explanation> devices;

  bool fits() const { return refusals.empty(); }
};

struct PodExplanation {
  // Why no node was considered: the pod is gated, or one of its claims is not usable. May be empty.
  std::string blocked;
  std::vector<NodeExplanation> nodes;  // by name

  bool FitsSomewhere() const;
};

// A pod that does not fit is not an error.
Result<PodExplanation> ExplainPod(const Simulation& simulation, SimulationOptions options);

}  // namespace drakkar::scheduler
