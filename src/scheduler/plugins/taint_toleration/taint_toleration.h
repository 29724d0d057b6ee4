#pragma once

#include <vector>

#include "scheduler/framework/plugin.h"
#include "scheduler/framework/plugin_context.h"

namespace drakkar::scheduler {

// Rejects nodes with untolerated taints (NoSchedule, NoExecute) or scores them lower
// (PreferNoSchedule). Evaluated once per group of equally tainted nodes.
class TaintToleration final : public Plugin {
 public:
  explicit TaintToleration(const PluginContext& context)
      : nodes_(context.nodes), comparisons_(context.comparisons()) {}
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
  const Comparisons comparisons_;
  std::vector<std::int64_t> disliked_;  // per taint group; scratch space
};

}  // namespace drakkar::scheduler
