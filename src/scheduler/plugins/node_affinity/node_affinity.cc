#include "scheduler/plugins/node_affinity/node_affinity.h"

#include <algorithm>

#include "api/json/writer.h"
#include "api/keys.h"
#include "base/text/text.h"
#include "scheduler/plugins/node_affinity/node_selector.h"

namespace drakkar::scheduler {

namespace key = api::key;
using api::Value;

namespace {

Value Required(const PodInfo& pod) {
  return pod.spec()[key::kAffinity][key::kNodeAffinity]
                   ["requiredDuringSchedulingIgnoredDuringExecution"];
}

Value Preferred(const PodInfo& pod) {
  return pod.spec()[key::kAffinity][key::kNodeAffinity]
                   ["preferredDuringSchedulingIgnoredDuringExecution"];
}

}  // namespace

bool NodeAffinity::MayHelp(const PodInfo& pod, const ClusterEvent& event) {
  if (event.kind == EventKind::kTargetPodChange) return true;
  return NodeCondition::Read(pod.spec()).Matches(event.after->root());
}

Status NodeAffinity::PreFilter(Cycle& cycle) {
  const PodInfo& pod = *cycle.pod;
  const bool asks = !pod.spec()[key::kNodeSelector].empty() ||
                    pod.spec()[key::kAffinity][key::kNodeAffinity].has_value();
  return asks ? Status::Success() : Status::Skip();
}

Status NodeAffinity::Filter(Cycle& cycle, NodeSet& nodes) {
  const PodInfo& pod = *cycle.pod;
  const Value selector = pod.spec()[key::kNodeSelector];
  if (selector.empty() && !Required(pod).has_value()) return Status::Success();
  std::string text = selector.exists() ? api::WriteJson(selector) : std::string();
  if (Required(pod).has_value()) text += StrCat("\n", api::WriteJson(Required(pod)));
  nodes.IntersectWith(Matching(text, [&]() -> Matcher {
    return [condition = NodeCondition::Read(pod.spec())](Value node) {
      return condition.Matches(node);
    };
  }));
  return Status::Success();
}

void NodeAffinity::Explain(Cycle&, const NodeSet& rejected, Diagnosis& diagnosis) {
  diagnosis.Count("node(s) didn't match Pod's node affinity/selector", rejected.Count());
}

bool NodeAffinity::Score(Cycle& cycle, std::span<const NodeIndex> nodes,
                         std::span<std::int64_t> scores) {
  const Value preferred = Preferred(*cycle.pod);
  if (preferred.empty()) return false;
  std::fill(scores.begin(), scores.end(), 0);
  for (Value each : preferred.elements()) {
    const std::int64_t points = each[key::kWeight].integer();
    const Value term = each["preference"];
    if (points == 0) continue;
    const NodeSet& matching = Matching(StrCat("?", api::WriteJson(term)), [&]() -> Matcher {
      return [parsed = NodeTerm::Read(term)](Value node) { return parsed.Matches(node); };
    });
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (matching.Contains(nodes[i])) scores[i] += points;
    }
  }
  const std::int64_t most = *std::max_element(scores.begin(), scores.end());
  if (most <= 0) return false;
  for (std::int64_t& score : scores) score = score * 100 / most;
  return true;
}

const NodeSet& NodeAffinity::Matching(const std::string& text,
                                      const std::function<Matcher()>& make) {
  auto found = remembered_.find(text);
  if (found == remembered_.end()) {
    if (remembered_.size() >= kMaxRemembered) remembered_.clear();
    found = remembered_.emplace(text, Remembered{.matcher = make()}).first;
  }
  Remembered& entry = found->second;
  entry.matching.Resize(nodes_.size());
  if (entry.version == nodes_.label_version()) return entry.matching;
  const std::vector<std::uint64_t>& versions = nodes_.label_versions();
  for (NodeIndex node = 0; node < versions.size(); ++node) {
    if (versions[node] <= entry.version) continue;
    entry.matching.Put(node, nodes_.known().Contains(node) &&
                                 entry.matcher(nodes_.object(node)->root()));
  }
  entry.version = nodes_.label_version();
  return entry.matching;
}

}  // namespace drakkar::scheduler
