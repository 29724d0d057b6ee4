#pragma once

#include "scheduler/framework/plugin.h"
#include "scheduler/framework/plugin_context.h"

namespace drakkar::scheduler {

// Rejects nodes on which a host port of the pod is in use.
class NodePorts final : public Plugin {
 public:
  explicit NodePorts(const PluginContext& context) : nodes_(context.nodes) {}
  EventMask events() const override {
    return MaskOf(EventKind::kNodeAdd, EventKind::kBoundPodRemove);
  }
  bool MayHelp(const PodInfo& pod, const ClusterEvent& event) override;
  Status PreFilter(Cycle& cycle) override;
  Status Filter(Cycle& cycle, NodeSet& nodes) override;
  void Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) override;

 private:
  const NodeTable& nodes_;
};

}  // namespace drakkar::scheduler
