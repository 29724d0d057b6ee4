#include "scheduler/plugins/node_name/node_name.h"

namespace drakkar::scheduler {

bool NodeName::MayHelp(const PodInfo& pod, const ClusterEvent& event) {
  return event.after->name() == pod.node_name;
}

Status NodeName::PreFilter(Cycle& cycle) {
  return cycle.pod->node_name.empty() ? Status::Skip() : Status::Success();
}

Status NodeName::Filter(Cycle& cycle, NodeSet& nodes) {
  const NodeIndex wanted = nodes_.Find(cycle.pod->node_name);
  const bool there = nodes.Contains(wanted);
  nodes.Clear();
  if (there) nodes.Add(wanted);
  return Status::Success();
}

void NodeName::Explain(Cycle&, const NodeSet& rejected, Diagnosis& diagnosis) {
  diagnosis.Count("node(s) didn't match the requested node name", rejected.Count());
}

}  // namespace drakkar::scheduler
