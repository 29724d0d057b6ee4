#pragma once

#include "scheduler/framework/plugin.h"
#include "scheduler/framework/plugin_context.h"

namespace drakkar::scheduler {

// Rejects cordoned nodes unless the pod tolerates them.
class NodeUnschedulable final : public Plugin {
 public:
  explicit NodeUnschedulable(const PluginContext& context) : nodes_(context.nodes) {}
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
