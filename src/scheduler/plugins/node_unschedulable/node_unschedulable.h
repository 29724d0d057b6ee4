#pragma once

#include "scheduler/cache/node_table.h"
#include "scheduler/framework/plugin.h"

namespace drakkar::scheduler {

// Nodes marked unschedulable take only pods that tolerate it.
class NodeUnschedulable final : public Plugin {
 public:
  explicit NodeUnschedulable(const NodeTable& nodes) : nodes_(nodes) {}
  std::string_view name() const override { return "NodeUnschedulable"; }
  Points points() const override { return Point::kFilter | Points{0}; }
  EventMask events() const override {
    return MaskOf(EventKind::kNodeAdd, EventKind::kNodeTaint, EventKind::kTargetPodChange);
  }
  bool MayHelp(const PodInfo& pod, const ClusterEvent& event) override;
  Status Filter(Cycle& cycle, NodeSet& nodes) override;
  void Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) override;

 private:
  const NodeTable& nodes_;
};

}  // namespace drakkar::scheduler
