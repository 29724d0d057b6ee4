#pragma once

#include "scheduler/framework/plugin.h"
#include "scheduler/framework/plugin_context.h"

namespace drakkar::scheduler {

// Restricts a pod with spec.nodeName to that node.
class NodeName final : public Plugin {
 public:
  explicit NodeName(const PluginContext& context) : nodes_(context.nodes) {}
  EventMask events() const override { return MaskOf(EventKind::kNodeAdd); }
  bool MayHelp(const PodInfo& pod, const ClusterEvent& event) override;
  Status PreFilter(Cycle& cycle) override;
  Status Filter(Cycle& cycle, NodeSet& nodes) override;
  void Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) override;

 private:
  const NodeTable& nodes_;
};

}  // namespace drakkar::scheduler
