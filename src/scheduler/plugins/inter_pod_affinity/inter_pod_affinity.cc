#include "scheduler/plugins/inter_pod_affinity/inter_pod_affinity.h"

#include <algorithm>

namespace drakkar::scheduler {
namespace {

using Terms = std::vector<AffinityTerm>;

bool AllMatch(const Terms& terms, const api::Object& pod) {
  return std::all_of(terms.begin(), terms.end(),
                     [&](const AffinityTerm& term) { return term.Matches(pod); });
}

bool AnyMatches(const Terms& terms, const api::Object& pod) {
  return std::any_of(terms.begin(), terms.end(),
                     [&](const AffinityTerm& term) { return term.Matches(pod); });
}

void AddAll(NodeSet& nodes, const NodeSet& more) {
  more.ForEach([&](NodeIndex node) { nodes.Add(node); });
}

}  // namespace

// The result of PreFilter for one pod: the nodes that each rule excludes.
struct InterPodAffinity::Verdicts final : PluginState {
  NodeSet lonely;     // without the pods that the pod must be with
  NodeSet avoided;    // with pods that it must not be with
  NodeSet repelling;  // with pods that must not be with it
};

bool InterPodAffinity::MayHelp(const PodInfo& pod, const ClusterEvent& event) {
  const auto is_company = [&](const api::ObjectPtr& other) {
    return other != nullptr && !pod.affinity.empty() && AllMatch(pod.affinity, *other);
  };
  switch (event.kind) {
    case EventKind::kBoundPodAdd:
      return is_company(event.after);
    case EventKind::kBoundPodLabel:
      return is_company(event.after) ||
             (event.before != nullptr && AnyMatches(pod.anti_affinity, *event.before));
    case EventKind::kBoundPodRemove:
      return AnyMatches(pod.anti_affinity, *event.before) ||
             AnyMatches(ReadRequiredTerms(*event.before, "podAntiAffinity"), *pod.pod);
    default:
      return true;
  }
}

bool InterPodAffinity::NoteMatch(const AffinityTerm& term, NodeIndex node,
                                 std::vector<bool>& found) {
  const TopologyDomains& domains = domains_.DomainsOf(term.topology_key);
  if (domains.of_node[node] == TopologyDomains::kNone) return false;
  found.resize(domains.count);
  found[domains.of_node[node]] = true;
  return true;
}

NodeSet InterPodAffinity::NodesIn(const AffinityTerm& term, const std::vector<bool>& found) {
  NodeSet nodes;
  nodes.Resize(nodes_.size());
  if (found.empty()) return nodes;
  const TopologyDomains& domains = domains_.DomainsOf(term.topology_key);
  domains.nodes.ForEach([&](NodeIndex node) {
    if (found[domains.of_node[node]]) nodes.Add(node);
  });
  return nodes;
}

NodeSet InterPodAffinity::NodesWithCompany(const PodInfo& pod) {
  Found found(pod.affinity.size());
  bool is_anywhere = false;
  // As in Kubernetes, only pods that match all terms are company.
  nodes_.known().ForEach([&](NodeIndex node) {
    for (const PodInfoPtr& other : placements_.PodsOn(node)) {
      if (!AllMatch(pod.affinity, *other->pod)) continue;
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (NoteMatch(pod.affinity[i], node, found[i])) is_anywhere = true;
      }
      break;
    }
  });
  NodeSet nodes = nodes_.known();
  // The first pod of a group that wants to be together may start anywhere.
  const bool is_first = !is_anywhere && AllMatch(pod.affinity, *pod.pod);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const AffinityTerm& term = pod.affinity[i];
    nodes.IntersectWith(is_first ? domains_.DomainsOf(term.topology_key).nodes
                                 : NodesIn(term, found[i]));
  }
  return nodes;
}

NodeSet InterPodAffinity::NodesToAvoid(const PodInfo& pod) {
  NodeSet nodes;
  nodes.Resize(nodes_.size());
  for (const AffinityTerm& term : pod.anti_affinity) {
    std::vector<bool> found;
    nodes_.known().ForEach([&](NodeIndex node) {
      const std::vector<PodInfoPtr>& pods = placements_.PodsOn(node);
      const bool matches = std::any_of(pods.begin(), pods.end(), [&](const PodInfoPtr& other) {
        return term.Matches(*other->pod);
      });
      if (matches) NoteMatch(term, node, found);
    });
    AddAll(nodes, NodesIn(term, found));
  }
  return nodes;
}

NodeSet InterPodAffinity::NodesThatRepel(const PodInfo& pod) {
  NodeSet nodes;
  nodes.Resize(nodes_.size());
  for (const auto& [uid, other] : placements_.repelling()) {
    for (const AffinityTerm& term : other.pod->anti_affinity) {
      if (nodes.Contains(other.node) || !term.Matches(*pod.pod)) continue;
      std::vector<bool> found;
      if (NoteMatch(term, other.node, found)) AddAll(nodes, NodesIn(term, found));
    }
  }
  return nodes;
}

Status InterPodAffinity::PreFilter(Cycle& cycle) {
  const PodInfo& pod = *cycle.pod;
  if (pod.affinity.empty() && pod.anti_affinity.empty() && placements_.repelling().empty()) {
    return Status::Skip();
  }
  auto verdicts = std::make_unique<Verdicts>();
  verdicts->lonely.Resize(nodes_.size());
  if (!pod.affinity.empty()) {
    verdicts->lonely = nodes_.known();
    verdicts->lonely.RemoveAll(NodesWithCompany(pod));
  }
  verdicts->avoided = NodesToAvoid(pod);
  verdicts->repelling = NodesThatRepel(pod);
  cycle.states[id()] = std::move(verdicts);
  return Status::Success();
}

Status InterPodAffinity::Filter(Cycle& cycle, NodeSet& nodes) {
  const auto& verdicts = static_cast<const Verdicts&>(*cycle.states[id()]);
  nodes.RemoveAll(verdicts.lonely);
  nodes.RemoveAll(verdicts.avoided);
  nodes.RemoveAll(verdicts.repelling);
  return Status::Success();
}

void InterPodAffinity::Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) {
  const auto& verdicts = static_cast<const Verdicts&>(*cycle.states[id()]);
  NodeSet rest = rejected;
  const auto count = [&](const NodeSet& nodes, std::string_view reason) {
    NodeSet here = rest;
    here.IntersectWith(nodes);
    if (!here.IsEmpty()) diagnosis.Count(reason, here.Count());
    rest.RemoveAll(nodes);
  };
  count(verdicts.lonely, "node(s) didn't match pod affinity rules");
  count(verdicts.avoided, "node(s) didn't match pod anti-affinity rules");
  count(verdicts.repelling, "node(s) didn't satisfy existing pods anti-affinity rules");
}

}  // namespace drakkar::scheduler
