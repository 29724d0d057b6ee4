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

// What the allocator says about every node for the claims of one pod. Nodes with equal devices
// share a verdict, so most questions cost as much as there are different nodes. Keeps its memory
// from one search to the next.
class NodeVerdicts {
 public:
  NodeVerdicts(const NodeTable& nodes, DeviceState& devices) : nodes_(nodes), devices_(devices) {}

  // Replaces the verdicts. The questions below are about the last search.
  void Search(const allocator::Problem& problem, const allocator::SearchBudget& budget);

  // Takes out the nodes on which the claims cannot be allocated. An error if that could not be
  // found out for one of `nodes`.
  Status Restrict(NodeSet& nodes) const;
  bool AnyFits(const NodeSet& nodes) const;
  // With devices that have no binding conditions to wait for.
  bool AnyFitsReady(const NodeSet& nodes) const;
  // Where some of `nodes` wait for conditions and others do not: keeps those with the best
  // alternative of firstAvailable and, among equals, those that do not wait. True if those that are
  // left wait.
  bool PreferReady(NodeSet& nodes) const;
  bool AnyWaits() const;
  // Points for the alternative of firstAvailable that each node gets. False: all are equal.
  bool Score(std::span<const NodeIndex> nodes, std::span<std::int64_t> scores) const;
  // Counts why each of `rejected` was taken out.
  void Explain(const NodeSet& rejected, Diagnosis& diagnosis) const;

 private:
  using Verdict = allocator::Allocator::Verdict;
  const Verdict& Of(NodeIndex node) const { return verdicts_.distinct[IndexOf(node)]; }
  std::uint32_t IndexOf(NodeIndex node) const { return verdicts_.by_node[devices_.NumberOf(node)]; }

  const NodeTable& nodes_;
  DeviceState& devices_;
  allocator::Allocator::Verdicts verdicts_;
  std::vector<Verdict::Kind> kinds_;  // of verdicts_.distinct, close together
};

}  // namespace drakkar::scheduler
