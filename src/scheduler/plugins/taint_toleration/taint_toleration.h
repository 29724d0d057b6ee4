#pragma once

#include <vector>

#include "scheduler/cache/node_table.h"
#include "scheduler/framework/plugin.h"

namespace drakkar::scheduler {

// Nodes with taints take only pods that tolerate them (NoSchedule, NoExecute) or are chosen last
// (PreferNoSchedule). Asked once per group of equally tainted nodes.
class TaintToleration final : public Plugin {
 public:
  explicit TaintToleration(const NodeTable& nodes) : nodes_(nodes) {}
  std::string_view name() const override { return "TaintToleration"; }
  Points points() const override { return Point::kFilter | Point::kScore; }
  EventMask events() const override {
    return MaskOf(EventKind::kNodeAdd, EventKind::kNodeTaint, EventKind::kTargetPodChange);
  }
  bool MayHelp(const PodInfo& pod, const ClusterEvent& event) override;
  Status Filter(Cycle& cycle, NodeSet& nodes) override;
  void Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) override;
  bool Score(Cycle& cycle, std::span<const NodeIndex> nodes,
             std::span<std::int64_t> scores) override;

 private:
  const NodeTable& nodes_;
  std::vector<std::int64_t> disliked_;  // per taint group; scratch
};

}  // namespace drakkar::scheduler
