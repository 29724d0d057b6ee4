#include "scheduler/plugins/inter_pod_affinity/inter_pod_affinity.h"

#include <algorithm>
#include <map>

#include "base/text/text.h"

namespace drakkar::scheduler {
namespace {

// What a placed pod's required affinity adds to the score of its domain.
constexpr std::int64_t kHardPodAffinityWeight = 1;

bool MatchesAll(std::span<const AffinityTerm> terms, const api::Object& pod,
                const NamespaceLabels& namespaces) {
  return std::all_of(terms.begin(), terms.end(),
                     [&](const AffinityTerm& term) { return term.Matches(pod, namespaces); });
}

bool MatchesAny(std::span<const AffinityTerm> terms, const api::Object& pod,
                const NamespaceLabels& namespaces) {
  return std::any_of(terms.begin(), terms.end(),
                     [&](const AffinityTerm& term) { return term.Matches(pod, namespaces); });
}

}  // namespace

// A number for each domain of one topology key.
struct InterPodAffinity::Domains {
  std::vector<std::uint32_t> of_node;
  std::vector<std::int64_t> pods;  // by domain

  bool HasLabel(NodeIndex node) const { return of_node[node] != TopologyDomains::kNone; }
  std::int64_t PodsNear(NodeIndex node) const { return HasLabel(node) ? pods[of_node[node]] : 0; }
};

// The result of PreFilter for one pod.
struct InterPodAffinity::Needs final : PluginState {
  std::vector<Domains> affinity;  // one per required term
  // No pod matches the affinity terms except the pod itself. It may then go anywhere; otherwise the
  // first pod of a group that wants to be together could not start.
  bool is_first = false;
  std::vector<Domains> anti_affinity;
  NodeSet blocked;
};

bool InterPodAffinity::MayHelp(const PodInfo& pod, const ClusterEvent& event) {
  const Result<AffinityTerms> terms = ReadAffinityTerms(pod);
  if (!terms.ok()) return event.kind == EventKind::kTargetPodChange;
  const auto is_wanted = [&](const api::ObjectPtr& other) {
    return !terms->affinity.empty() && MatchesAll(terms->affinity, *other, namespaces_);
  };
  const auto is_avoided = [&](const api::ObjectPtr& other) {
    return MatchesAny(terms->anti_affinity, *other, namespaces_);
  };
  switch (event.kind) {
    case EventKind::kBoundPodAdd:
      return is_wanted(event.after);
    case EventKind::kBoundPodLabel:
      return (!is_wanted(event.before) && is_wanted(event.after)) ||
             (is_avoided(event.before) && !is_avoided(event.after));
    case EventKind::kBoundPodRemove: {
      if (is_avoided(event.before)) return true;
      const Result<AffinityTerms> theirs = ReadAffinityTerms(*MakePodInfo(event.before));
      // Without its last match, a group may start elsewhere.
      return is_wanted(event.before) ||
             (theirs.ok() && MatchesAny(theirs->anti_affinity, *pod.pod, namespaces_));
    }
    default:
      return true;
  }
}

InterPodAffinity::Domains InterPodAffinity::CountByDomain(const std::string& topology_key,
                                                          std::span<const AffinityTerm> terms) {
  std::string rule = StrCat(namespaces_.version());
  for (const AffinityTerm& term : terms) rule += StrCat("\n\n", term.Text());
  const std::vector<std::int64_t>& per_node = counts_.PodsPerNode(
      rule, [&](const PodInfo& placed) { return MatchesAll(terms, *placed.pod, namespaces_); });
  const TopologyDomains& topology = counts_.DomainsOf(topology_key);
  Domains domains{topology.of_node, std::vector<std::int64_t>(topology.count, 0)};
  topology.nodes.ForEach(
      [&](NodeIndex node) { domains.pods[domains.of_node[node]] += per_node[node]; });
  return domains;
}

// Calls `visit` for each node with the topology key of an entry that has pods of it. Users choose
// topology keys, so one that no such node has costs nothing else.
void InterPodAffinity::ForEachHolder(const PlacedTerms::Entry& entry,
                                     const std::function<void(NodeIndex, int)>& visit) const {
  for (const auto& [node, count] : entry.pods) {
    if (!nodes_.known().Contains(node)) continue;
    const api::Value labels = nodes_.object(node)->root()["metadata"]["labels"];
    if (labels.Entry(entry.term.topology_key).is_string()) visit(node, count);
  }
}

NodeSet InterPodAffinity::FindBlocked(const PodInfo& pod) {
  NodeSet blocked;
  blocked.Resize(nodes_.size());
  // Many pods may have terms with one topology key.
  std::map<std::string_view, NodeSet> holders;
  placed_.ForEachMatching(*pod.pod, namespaces_, [&](const PlacedTerms::Entry& entry) {
    if (entry.kind != PlacedTerms::Kind::kAntiAffinity) return;
    ForEachHolder(entry, [&](NodeIndex node, int) {
      NodeSet& nodes = holders[entry.term.topology_key];
      nodes.Resize(nodes_.size());
      nodes.Add(node);
    });
  });
  for (const auto& [topology_key, nodes] : holders) {
    const TopologyDomains& topology = counts_.DomainsOf(std::string(topology_key));
    std::vector<bool> taken(topology.count, false);
    nodes.ForEach([&](NodeIndex node) { taken[topology.of_node[node]] = true; });
    topology.nodes.ForEach([&](NodeIndex node) {
      if (taken[topology.of_node[node]]) blocked.Add(node);
    });
  }
  return blocked;
}

Status InterPodAffinity::PreFilter(Cycle& cycle) {
  const PodInfo& pod = *cycle.pod;
  placed_.Update();
  if (!pod.has_pod_affinity && placed_.empty()) return Status::Skip();
  const Result<AffinityTerms> terms = ReadAffinityTerms(pod);
  if (!terms.ok()) return Status::Unresolvable(terms.error().Prefixed("pod affinity").message);
  auto needs = std::make_unique<Needs>();
  needs->blocked = FindBlocked(pod);
  if (terms->affinity.empty() && terms->anti_affinity.empty() && needs->blocked.IsEmpty()) {
    return Status::Skip();
  }
  bool has_match = false;
  for (const AffinityTerm& term : terms->affinity) {
    const Domains& counted =
        needs->affinity.emplace_back(CountByDomain(term.topology_key, terms->affinity));
    has_match = has_match || std::any_of(counted.pods.begin(), counted.pods.end(),
                                         [](std::int64_t pods) { return pods > 0; });
  }
  needs->is_first = !has_match && MatchesAll(terms->affinity, *pod.pod, namespaces_);
  for (const AffinityTerm& term : terms->anti_affinity) {
    needs->anti_affinity.push_back(CountByDomain(term.topology_key, {&term, 1}));
  }
  cycle.states[id()] = std::move(needs);
  return Status::Success();
}

InterPodAffinity::Verdict InterPodAffinity::Judge(const Needs& needs, NodeIndex node) const {
  for (const Domains& each : needs.affinity) {
    if (!each.HasLabel(node)) return Verdict::kAffinity;
    if (!needs.is_first && each.PodsNear(node) == 0) return Verdict::kAffinity;
  }
  for (const Domains& each : needs.anti_affinity) {
    if (each.PodsNear(node) > 0) return Verdict::kAntiAffinity;
  }
  return needs.blocked.Contains(node) ? Verdict::kPlacedAntiAffinity : Verdict::kFits;
}

Status InterPodAffinity::Filter(Cycle& cycle, NodeSet& nodes) {
  const auto& needs = static_cast<const Needs&>(*cycle.states[id()]);
  const NodeSet before = nodes;
  before.ForEach([&](NodeIndex node) {
    if (Judge(needs, node) != Verdict::kFits) nodes.Remove(node);
  });
  return Status::Success();
}

void InterPodAffinity::Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) {
  const auto& needs = static_cast<const Needs&>(*cycle.states[id()]);
  std::map<Verdict, std::size_t> counts;
  rejected.ForEach([&](NodeIndex node) { ++counts[Judge(needs, node)]; });
  const auto count = [&](Verdict verdict, std::string_view reason) {
    if (counts[verdict] > 0) diagnosis.Count(std::string(reason), counts[verdict]);
  };
  count(Verdict::kAffinity, "node(s) didn't match pod affinity rules");
  count(Verdict::kAntiAffinity, "node(s) didn't match pod anti-affinity rules");
  count(Verdict::kPlacedAntiAffinity, "node(s) didn't satisfy existing pods anti-affinity rules");
}

bool InterPodAffinity::Score(Cycle& cycle, std::span<const NodeIndex> nodes,
                             std::span<std::int64_t> scores) {
  const PodInfo& pod = *cycle.pod;
  const Result<AffinityTerms> terms = ReadAffinityTerms(pod);
  placed_.Update();
  if (!terms.ok() || (terms->preferred.empty() && placed_.empty())) return false;
  std::fill(scores.begin(), scores.end(), 0);
  const auto add = [&](const Domains& domains, std::int64_t weight) {
    for (std::size_t i = 0; i < nodes.size(); ++i) scores[i] += weight * domains.PodsNear(nodes[i]);
  };
  for (const AffinityTerms::Preferred& each : terms->preferred) {
    add(CountByDomain(each.term.topology_key, {&each.term, 1}), each.weight);
  }
  // By topology key and node.
  std::map<std::string_view, std::map<NodeIndex, std::int64_t>> points;
  placed_.ForEachMatching(*pod.pod, namespaces_, [&](const PlacedTerms::Entry& entry) {
    if (entry.kind == PlacedTerms::Kind::kAntiAffinity) return;
    const std::int64_t weight =
        entry.kind == PlacedTerms::Kind::kPreferred ? entry.weight : kHardPodAffinityWeight;
    ForEachHolder(entry, [&](NodeIndex node, int count) {
      points[entry.term.topology_key][node] += weight * count;
    });
  });
  for (const auto& [topology_key, of_nodes] : points) {
    const TopologyDomains& topology = counts_.DomainsOf(std::string(topology_key));
    Domains domains{topology.of_node, std::vector<std::int64_t>(topology.count, 0)};
    for (const auto& [node, sum] : of_nodes) domains.pods[topology.of_node[node]] += sum;
    add(domains, 1);
  }
  const auto [least, most] = std::minmax_element(scores.begin(), scores.end());
  const std::int64_t low = *least;
  const std::int64_t range = *most - low;
  if (range == 0) return false;
  for (std::int64_t& score : scores) score = 100 * (score - low) / range;
  return true;
}

}  // namespace drakkar::scheduler
