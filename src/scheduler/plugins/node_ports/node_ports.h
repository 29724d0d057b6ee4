#pragma once

#include "scheduler/cache/node_table.h"
#include "scheduler/framework/plugin.h"

namespace drakkar::scheduler {

// No two pods of a node use the same host port.
class NodePorts final : public Plugin {
 public:
  explicit NodePorts(const NodeTable& nodes) : nodes_(nodes) {}
  std::string_view name() const override { return "NodePorts"; }
  Points points() const override { return Point::kPreFilter | Point::kFilter; }
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
