#include "scheduler/plugins/pod_topology_spread/pod_topology_spread.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text/text.h"

namespace drakkar::scheduler {

using api::Value;

namespace {

constexpr char kHostname[] = "kubernetes.io/hostname";
constexpr std::int64_t kAbsent = -1;  // a domain without a counted node

Value LabelsOf(const api::ObjectPtr& node) {
  return node->root()["metadata"]["labels"];
}

bool HasAllKeys(const std::vector<SpreadConstraint>& constraints, Value labels) {
  return std::all_of(constraints.begin(), constraints.end(), [&](const SpreadConstraint& each) {
    return labels.Entry(each.topology_key).is_string();
  });
}

}  // namespace

// The result of PreFilter for one pod.
struct PodTopologySpread::Spread final : PluginState {
  // A DoNotSchedule constraint and the cluster state it depends on.
  struct Hard {
    std::int64_t max_skew = 1;
    std::int64_t self = 0;               // what the pod itself adds
    std::int64_t least = 0;              // pods in the emptiest domain
    std::vector<std::uint32_t> domains;  // by node; TopologyDomains::kNone: label missing
    std::vector<std::int64_t> pods;      // by domain
  };
  std::vector<Hard> hard;
};

bool PodTopologySpread::MayHelp(const PodInfo& pod, const ClusterEvent& event) {
  if (event.kind == EventKind::kTargetPodChange) return true;
  const auto constraints = ReadSpreadConstraints(pod, kDoNotSchedule);
  if (!constraints.ok()) return false;
  const auto counts = [&](const api::ObjectPtr& other) {
    return other != nullptr &&
           std::any_of(constraints->begin(), constraints->end(),
                       [&](const SpreadConstraint& each) { return each.Counts(*other, pod.ns()); });
  };
  switch (event.kind) {
    case EventKind::kBoundPodAdd:
      return counts(event.after);
    case EventKind::kBoundPodLabel:
      return counts(event.before) || counts(event.after);
    case EventKind::kBoundPodRemove:
      // The pod may have been counted before its deletion began.
      return std::any_of(constraints->begin(), constraints->end(), [&](const auto& each) {
        return event.before->namespace_() == pod.ns() &&
               each.selector.Matches(event.before->root()["metadata"]["labels"]);
      });
    case EventKind::kNodeAdd:
      return HasAllKeys(*constraints, LabelsOf(event.after));
    case EventKind::kNodeRemove:
      return HasAllKeys(*constraints, LabelsOf(event.before));
    case EventKind::kNodeLabel: {
      const NodeCondition condition = NodeCondition::Read(pod.spec());
      const bool counts_change =
          condition.Matches(event.before->root()) != condition.Matches(event.after->root());
      return std::any_of(constraints->begin(), constraints->end(), [&](const auto& each) {
        const std::string_view topology_key = each.topology_key;
        return (each.honors_affinity && counts_change) ||
               !api::Equal(LabelsOf(event.before).Entry(topology_key),
                           LabelsOf(event.after).Entry(topology_key));
      });
    }
    case EventKind::kNodeTaint:
      return std::any_of(constraints->begin(), constraints->end(),
                         [](const SpreadConstraint& each) { return each.honors_taints; });
    default:
      return true;
  }
}

NodeSet PodTopologySpread::WithAllKeys(const std::vector<SpreadConstraint>& constraints) {
  NodeSet nodes = nodes_.known();
  for (const SpreadConstraint& each : constraints) {
    nodes.IntersectWith(counts_.DomainsOf(each.topology_key).nodes);
  }
  return nodes;
}

const std::vector<std::int64_t>& PodTopologySpread::PodsPerNode(const SpreadConstraint& constraint,
                                                                std::string_view ns) {
  const std::string rule = StrCat(ns, constraint.selector.matches_nothing() ? "\n!" : "\n",
                                  constraint.selector.ToString());
  return counts_.PodsPerNode(
      rule, [&](const PodInfo& placed) { return constraint.Counts(*placed.pod, ns); });
}

void PodTopologySpread::KeepCounted(const SpreadConstraint& constraint, const PodInfo& pod,
                                    NodeSet& nodes) {
  if (constraint.honors_affinity) {
    if (const NodeSet* matching = matches_.FindFor(pod.spec()); matching != nullptr) {
      nodes.IntersectWith(*matching);
    }
  }
  if (!constraint.honors_taints) return;
  const Value tolerations = pod.spec()["tolerations"];
  for (const NodeTable::TaintGroup& group : nodes_.taint_groups()) {
    if (FindUntolerated(group.taints, tolerations, comparisons_) != nullptr) {
      nodes.RemoveAll(group.nodes);
    }
  }
}

Status PodTopologySpread::PreFilter(Cycle& cycle) {
  const PodInfo& pod = *cycle.pod;
  if (pod.spec()["topologySpreadConstraints"].empty()) return Status::Skip();
  const auto hard = ReadSpreadConstraints(pod, kDoNotSchedule);
  if (!hard.ok()) return Status::Error(hard.error().Prefixed("topology spread").message);
  auto spread = std::make_unique<Spread>();
  const NodeSet with_keys = WithAllKeys(*hard);
  for (const SpreadConstraint& constraint : *hard) {
    Spread::Hard& found = spread->hard.emplace_back();
    found.max_skew = constraint.max_skew;
    found.self = constraint.CountsItself(pod) ? 1 : 0;
    NodeSet counted = with_keys;
    KeepCounted(constraint, pod, counted);
    const TopologyDomains& domains = counts_.DomainsOf(constraint.topology_key);
    found.domains = domains.of_node;
    found.pods.assign(domains.count, kAbsent);
    const std::vector<std::int64_t>& pods = PodsPerNode(constraint, pod.ns());
    counted.ForEach([&](NodeIndex node) {
      std::int64_t& sum = found.pods[found.domains[node]];
      sum = std::max<std::int64_t>(sum, 0) + pods[node];
    });
    std::int64_t present = 0;
    found.least = std::numeric_limits<std::int64_t>::max();
    for (std::int64_t& sum : found.pods) {
      if (sum == kAbsent) {
        sum = 0;
        continue;
      }
      ++present;
      found.least = std::min(found.least, sum);
    }
    // With fewer domains than wanted, the missing ones count as empty.
    if (present < constraint.min_domains) found.least = 0;
  }
  cycle.states[id()] = std::move(spread);
  return Status::Success();
}

PodTopologySpread::Verdict PodTopologySpread::Judge(const Spread& spread, NodeIndex node) const {
  for (const Spread::Hard& each : spread.hard) {
    const std::uint32_t domain = each.domains[node];
    if (domain == TopologyDomains::kNone) return Verdict::kNoLabel;
    if (each.pods[domain] + each.self - each.least > each.max_skew) return Verdict::kSkewed;
  }
  return Verdict::kFits;
}

Status PodTopologySpread::Filter(Cycle& cycle, NodeSet& nodes) {
  const auto& spread = static_cast<const Spread&>(*cycle.states[id()]);
  if (spread.hard.empty()) return Status::Success();
  const NodeSet before = nodes;
  before.ForEach([&](NodeIndex node) {
    if (Judge(spread, node) != Verdict::kFits) nodes.Remove(node);
  });
  return Status::Success();
}

void PodTopologySpread::Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) {
  const auto& spread = static_cast<const Spread&>(*cycle.states[id()]);
  std::size_t without_label = 0;
  rejected.ForEach([&](NodeIndex node) {
    if (Judge(spread, node) == Verdict::kNoLabel) ++without_label;
  });
  const std::size_t skewed = rejected.Count() - without_label;
  if (skewed > 0) {
    diagnosis.Count("node(s) didn't match pod topology spread constraints", skewed);
  }
  if (without_label > 0) {
    diagnosis.Count("node(s) didn't match pod topology spread constraints (missing required label)",
                    without_label);
  }
}

void PodTopologySpread::AddPoints(const SpreadConstraint& constraint, const NodeSet& with_keys,
                                  const PodInfo& pod, std::span<const NodeIndex> nodes,
                                  std::span<double> points) {
  const std::vector<std::uint32_t>& domains = counts_.DomainsOf(constraint.topology_key).of_node;
  const std::size_t domain_count = counts_.DomainsOf(constraint.topology_key).count;
  const std::vector<std::int64_t>& pods = PodsPerNode(constraint, pod.ns());
  // As in Kubernetes, each node is its own hostname domain, so the policies do not affect its
  // count.
  const bool is_node = constraint.topology_key == kHostname;
  std::vector<std::int64_t> sums(domain_count, kAbsent);
  std::size_t size = 0;
  for (const NodeIndex node : nodes) {
    if (!with_keys.Contains(node)) continue;
    if (is_node) {
      ++size;
    } else if (sums[domains[node]] == kAbsent) {
      sums[domains[node]] = 0;
      ++size;
    }
  }
  if (!is_node) {
    NodeSet counted = with_keys;
    KeepCounted(constraint, pod, counted);
    counted.ForEach([&](NodeIndex node) {
      if (sums[domains[node]] != kAbsent) sums[domains[node]] += pods[node];
    });
  }
  // More domains get more weight; otherwise many small domains would count less than a few large
  // ones.
  const double weight = std::log(static_cast<double>(size + 2));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!with_keys.Contains(nodes[i])) continue;
    const std::int64_t count = is_node ? pods[nodes[i]] : sums[domains[nodes[i]]];
    points[i] += static_cast<double>(count) * weight + static_cast<double>(constraint.max_skew - 1);
  }
}

bool PodTopologySpread::Score(Cycle& cycle, std::span<const NodeIndex> nodes,
                              std::span<std::int64_t> scores) {
  // Read here because a profile may disable PreFilter.
  const auto soft = ReadSpreadConstraints(*cycle.pod, kScheduleAnyway);
  if (!soft.ok() || soft->empty()) return false;
  const NodeSet with_keys = WithAllKeys(*soft);
  std::vector<double> points(nodes.size(), 0);
  for (const SpreadConstraint& constraint : *soft) {
    AddPoints(constraint, with_keys, *cycle.pod, nodes, points);
  }
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    scores[i] = static_cast<std::int64_t>(std::llround(points[i]));
    if (!with_keys.Contains(nodes[i])) continue;
    least = std::min(least, scores[i]);
    most = std::max(most, scores[i]);
  }
  // Fewer pods are better. A node that lacks one of the labels scores zero.
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!with_keys.Contains(nodes[i])) {
      scores[i] = 0;
    } else {
      scores[i] = most == 0 ? 100 : 100 * (most + least - scores[i]) / most;
    }
  }
  return true;
}

}  // namespace drakkar::scheduler
