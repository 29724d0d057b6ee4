#include "scheduler/plugins/node_unschedulable/node_unschedulable.h"

namespace drakkar::scheduler {

namespace {

bool Tolerates(const PodInfo& pod) {
  static const NodeTaint taint{"node.kubernetes.io/unschedulable", "", "NoSchedule"};
  // It has no value to compare.
  return ToleratesTaint(pod.spec()["tolerations"], taint, Comparisons::kIgnored);
}

}  // namespace

bool NodeUnschedulable::MayHelp(const PodInfo& pod, const ClusterEvent& event) {
  if (event.kind == EventKind::kTargetPodChange) return Tolerates(pod);
  return !event.after->root()["spec"]["unschedulable"].boolean() || Tolerates(pod);
}

Status NodeUnschedulable::Filter(Cycle& cycle, NodeSet& nodes) {
  if (nodes_.unschedulable().IsEmpty() || Tolerates(*cycle.pod)) return Status::Success();
  nodes.RemoveAll(nodes_.unschedulable());
  return Status::Success();
}

void NodeUnschedulable::Explain(Cycle&, const NodeSet& rejected, Diagnosis& diagnosis) {
  diagnosis.Count("node(s) were unschedulable", rejected.Count());
}

}  // namespace drakkar::scheduler
