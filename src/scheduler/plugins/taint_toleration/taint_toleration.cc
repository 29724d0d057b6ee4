#include "scheduler/plugins/taint_toleration/taint_toleration.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::scheduler {

bool TaintToleration::MayHelp(const PodInfo& pod, const ClusterEvent& event) {
  if (event.kind == EventKind::kTargetPodChange) {
    return !api::Equal(event.before->root()["spec"]["tolerations"],
                       event.after->root()["spec"]["tolerations"]);
  }
  return FindUntolerated(ReadTaints(event.after->root()), pod.spec()["tolerations"],
                         comparisons_) == nullptr;
}

Status TaintToleration::Filter(Cycle& cycle, NodeSet& nodes) {
  const api::Value tolerations = cycle.pod->spec()["tolerations"];
  for (const NodeTable::TaintGroup& group : nodes_.taint_groups()) {
    if (group.node_count == 0 || group.taints.empty()) continue;
    if (FindUntolerated(group.taints, tolerations, comparisons_) != nullptr) {
      nodes.RemoveAll(group.nodes);
    }
  }
  return Status::Success();
}

void TaintToleration::Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) {
  const api::Value tolerations = cycle.pod->spec()["tolerations"];
  for (const NodeTable::TaintGroup& group : nodes_.taint_groups()) {
    if (group.node_count == 0) continue;
    const NodeTaint* taint = FindUntolerated(group.taints, tolerations, comparisons_);
    if (taint == nullptr) continue;
    NodeSet here = rejected;
    here.IntersectWith(group.nodes);
    const std::size_t count = here.Count();
    if (count == 0) continue;
    diagnosis.Count(StrCat("node(s) had untolerated taint {", taint->key, ": ", taint->value, "}"),
                    count);
  }
}

bool TaintToleration::Score(Cycle& cycle, std::span<const NodeIndex> nodes,
                            std::span<std::int64_t> scores) {
  const api::Value tolerations = cycle.pod->spec()["tolerations"];
  disliked_.assign(nodes_.taint_groups().size(), 0);
  bool any = false;
  for (std::size_t i = 0; i < disliked_.size(); ++i) {
    const NodeTable::TaintGroup& group = nodes_.taint_groups()[i];
    if (group.node_count == 0) continue;
    for (const NodeTaint& taint : group.taints) {
      if (taint.effect == "PreferNoSchedule" && !ToleratesTaint(tolerations, taint, comparisons_)) {
        ++disliked_[i];
        any = true;
      }
    }
  }
  if (!any) return false;
  std::int64_t most = 0;
  for (const NodeIndex node : nodes) most = std::max(most, disliked_[nodes_.taint_group(node)]);
  if (most == 0) return false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    scores[i] = 100 - disliked_[nodes_.taint_group(nodes[i])] * 100 / most;
  }
  return true;
}

}  // namespace drakkar::scheduler
