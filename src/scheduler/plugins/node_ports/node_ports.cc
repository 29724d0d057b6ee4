#include "scheduler/plugins/node_ports/node_ports.h"

#include "base/text/text.h"
#include "scheduler/cache/room_keepers.h"

namespace drakkar::scheduler {
namespace {

bool Conflict(const std::vector<HostPort>& wanted, const std::vector<HostPort>& used) {
  for (const HostPort& want : wanted) {
    for (const HostPort& use : used) {
      if (want.ConflictsWith(use)) return true;
    }
  }
  return false;
}

}  // namespace

bool NodePorts::MayHelp(const PodInfo& pod, const ClusterEvent& event) {
  if (event.kind == EventKind::kNodeAdd) return true;
  return Conflict(pod.host_ports, MakePodInfo(event.before)->host_ports);
}

Status NodePorts::PreFilter(Cycle& cycle) {
  return cycle.pod->host_ports.empty() ? Status::Skip() : Status::Success();
}

Status NodePorts::Filter(Cycle& cycle, NodeSet& nodes) {
  const PodInfo& pod = *cycle.pod;
  const NodeSet before = nodes;
  before.ForEach([&](NodeIndex node) {
    if (Conflict(pod.host_ports, nodes_.ports(node))) {
      nodes.Remove(node);
      return;
    }
    const auto* nominated = nodes_.FindNominated(node);
    if (nominated == nullptr) return;
    for (const PodInfoPtr& other : *nominated) {
      if (nodes_.KeepsRoomFrom(*other, pod) && Conflict(pod.host_ports, other->host_ports)) {
        nodes.Remove(node);
        return;
      }
    }
  });
  return Status::Success();
}

void NodePorts::Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) {
  constexpr std::string_view kReason = "node(s) didn't have free ports for the requested pod ports";
  const PodInfo& pod = *cycle.pod;
  RoomKeepers keepers;
  std::size_t kept = 0;
  rejected.ForEach([&](NodeIndex node) {
    if (Conflict(pod.host_ports, nodes_.ports(node))) return;
    ++kept;  // free, but kept for a nominated pod
    keepers.AddOf(nodes_, node, pod);
  });
  const std::size_t used = rejected.Count() - kept;
  if (used > 0) diagnosis.Count(kReason, used);
  if (kept > 0) diagnosis.Count(StrCat(kReason, " (", keepers.ToText(), ")"), kept);
}

}  // namespace drakkar::scheduler
