#include "scheduler/plugins/node_affinity/node_affinity.h"

#include <algorithm>

#include "api/json/writer.h"
#include "base/text/text.h"
#include "device/from_api.h"

namespace drakkar::scheduler {

using api::Value;

namespace {

constexpr char kRequired[] = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr char kPreferred[] = "preferredDuringSchedulingIgnoredDuringExecution";

Value Preferred(const PodInfo& pod) {
  return pod.spec()["affinity"]["nodeAffinity"][kPreferred];
}

device::NodeSelector ReadSelector(Value required) {
  Result<device::NodeSelector> selector = device::NodeSelectorFromApi(required);
  return selector.ok() ? *std::move(selector) : device::NodeSelector();
}

}  // namespace

NodeAffinity::NodeAffinity(const PluginContext& context, const Args& args)
    : nodes_(context.nodes),
      added_(args.added_affinity),
      added_required_(added_ == nullptr ? Value() : added_->root()[kRequired]),
      added_preferred_(added_ == nullptr ? Value() : added_->root()[kPreferred]) {}

bool NodeAffinity::MayHelp(const PodInfo& pod, const ClusterEvent& event) {
  if (event.kind == EventKind::kTargetPodChange) return true;
  const Value node = event.after->root();
  if (added_required_.has_value() && !IsMatch(ReadSelector(added_required_), node)) return false;
  return NodeCondition::Read(pod.spec()).Matches(node);
}

Status NodeAffinity::PreFilter(Cycle& cycle) {
  const PodInfo& pod = *cycle.pod;
  const bool asks = added_ != nullptr || !pod.spec()["nodeSelector"].empty() ||
                    pod.spec()["affinity"]["nodeAffinity"].has_value();
  return asks ? Status::Success() : Status::Skip();
}

Status NodeAffinity::Filter(Cycle& cycle, NodeSet& nodes) {
  const PodInfo& pod = *cycle.pod;
  if (added_required_.has_value()) nodes.IntersectWith(MatchingTerms(added_required_));
  if (const NodeSet* matching = matches_.FindFor(pod.spec()); matching != nullptr) {
    nodes.IntersectWith(*matching);
  }
  return Status::Success();
}

void NodeAffinity::Explain(Cycle&, const NodeSet& rejected, Diagnosis& diagnosis) {
  NodeSet by_pod = rejected;
  if (added_required_.has_value()) by_pod.IntersectWith(MatchingTerms(added_required_));
  const std::size_t count = by_pod.Count();
  const std::size_t by_profile = rejected.Count() - count;
  if (by_profile > 0) {
    diagnosis.Count("node(s) didn't match scheduler-enforced node affinity", by_profile);
  }
  if (count > 0) diagnosis.Count("node(s) didn't match Pod's node affinity/selector", count);
}

bool NodeAffinity::Score(Cycle& cycle, std::span<const NodeIndex> nodes,
                         std::span<std::int64_t> scores) {
  const Value preferred = Preferred(*cycle.pod);
  if (preferred.empty() && added_preferred_.empty()) return false;
  std::fill(scores.begin(), scores.end(), 0);
  AddPoints(added_preferred_, nodes, scores);
  AddPoints(preferred, nodes, scores);
  const std::int64_t most = *std::max_element(scores.begin(), scores.end());
  if (most <= 0) return false;
  for (std::int64_t& score : scores) score = score * 100 / most;
  return true;
}

void NodeAffinity::AddPoints(Value preferred, std::span<const NodeIndex> nodes,
                             std::span<std::int64_t> scores) {
  for (Value each : preferred.elements()) {
    const std::int64_t points = each["weight"].integer();
    const Value term = each["preference"];
    if (points == 0) continue;
    const NodeSet& matching =
        matches_.Find(StrCat("?", api::WriteJson(term)), [&]() -> NodeMatches::Matcher {
          return [parsed = device::NodeSelectorTermFromApi(term)](Value node) {
            return IsMatch(parsed, node);
          };
        });
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (matching.Contains(nodes[i])) scores[i] += points;
    }
  }
}

const NodeSet& NodeAffinity::MatchingTerms(Value required) {
  return matches_.Find(StrCat("+", api::WriteJson(required)), [&]() -> NodeMatches::Matcher {
    return [selector = ReadSelector(required)](Value node) { return IsMatch(selector, node); };
  });
}

}  // namespace drakkar::scheduler
