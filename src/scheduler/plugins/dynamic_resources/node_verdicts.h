#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "allocator/allocator.h"
#include "scheduler/cache/device_state.h"
#include "scheduler/cache/node_table.h"
#include "scheduler/framework/diagnosis.h"
#include "scheduler/framework/status.h"

namespace drakkar::scheduler {

// The allocator's verdict on every node for the claims of one pod. Nodes with equal devices share a
// verdict, so most queries cost as much as there are distinct verdicts. Reuses its memory from one
// search to the next.
class NodeVerdicts {
 public:
  NodeVerdicts(const NodeTable& nodes, DeviceState& devices) : nodes_(nodes), devices_(devices) {}

  // Replaces the verdicts. The functions below refer to the last search.
  void Search(const allocator::Problem& problem, const allocator::SearchBudget& budget);
  // The same with a problem of its own for each group of nodes. The functions below must be asked
  // only about nodes of a group.
  struct Part {
    const allocator::Problem* problem = nullptr;  // null: nothing to allocate on these nodes
    NodeSet nodes;
  };
  void Search(std::span<const Part> parts, const allocator::SearchBudget& budget);

  // Removes the nodes on which the claims cannot be allocated. Fails if that could not be
  // determined for one of `nodes`.
  Status Restrict(NodeSet& nodes) const;
  bool AnyFits(const NodeSet& nodes) const;
  // Whether the claims fit one of `nodes` with devices that have no binding conditions to wait for.
  bool AnyFitsReady(const NodeSet& nodes) const;
  // If some of `nodes` wait for conditions and others do not: keeps the nodes with the best
  // alternative of firstAvailable and, among equals, those that do not wait. Returns true if the
  // remaining nodes wait.
  bool PreferReady(NodeSet& nodes) const;
  bool AnyWaits() const;
  // Scores the alternative of firstAvailable that each node gets. Returns false if all are equal.
  bool Score(std::span<const NodeIndex> nodes, std::span<std::int64_t> scores) const;
  // Counts why each of `rejected` was removed.
  void Explain(const NodeSet& rejected, Diagnosis& diagnosis) const;

 private:
  using Verdict = allocator::Allocator::Verdict;
  const Verdict& Of(NodeIndex node) const { return verdicts_.distinct[IndexOf(node)]; }
  std::uint32_t IndexOf(NodeIndex node) const { return verdicts_.by_node[devices_.NumberOf(node)]; }
  void ReadKinds();

  const NodeTable& nodes_;
  DeviceState& devices_;
  allocator::Allocator::Verdicts verdicts_;
  allocator::Allocator::Verdicts part_;
  std::vector<Verdict::Kind> kinds_;  // kinds of verdicts_.distinct, stored contiguously
};

}  // namespace drakkar::scheduler
