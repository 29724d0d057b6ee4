#include "scheduler/plugins/node_declared_features/node_declared_features.h"

#include <algorithm>
#include <memory>

#include "api/keys.h"
#include "base/text/text.h"
#include "features/declared.h"

namespace drakkar::scheduler {

namespace key = api::key;

namespace {

constexpr std::uint32_t kNoGroup = ~std::uint32_t{0};

bool IsAllocated(const api::ObjectPtr& claim) {
  return claim != nullptr && claim->root()[key::kStatus][key::kAllocation].has_value();
}

bool Uses(const PodInfo& pod, const api::ObjectPtr& claim) {
  return claim->namespace_() == pod.ns() &&
         std::any_of(pod.claims.begin(), pod.claims.end(), [&](const PodClaim& each) {
           return each.claim_name == claim->name();
         });
}

}  // namespace

Result<features::FeatureSet> NodeDeclaredFeatures::Infer(const PodInfo& pod) const {
  features::PodInfo info = features::PodInfoOf(pod.pod->root());
  for (const PodClaim& each : pod.claims) {
    if (each.claim_name.empty()) continue;
    const CachedClaim* claim = options_.claims.Find(pod.ClaimKey(each));
    if (claim != nullptr && claim->latest != nullptr) info.claims.push_back(claim->latest->root());
  }
  return options_.framework.InferForPodScheduling(info, options_.version);
}

bool NodeDeclaredFeatures::MayHelp(const PodInfo& pod, const ClusterEvent& event) {
  switch (event.kind) {
    case EventKind::kNodeAdd:
      return true;
    case EventKind::kNodeDeclaredFeatures: {
      const Result<features::FeatureSet> required = Infer(pod);
      // What cannot be inferred is tried again, where the reason is told.
      if (!required.ok()) return true;
      const features::Framework& framework = options_.framework;
      return features::ComesToSatisfy(*required, framework.MapNodeFeatures(event.before->root()),
                                      framework.MapNodeFeatures(event.after->root()));
    }
    case EventKind::kTargetPodChange: {
      const Result<features::FeatureSet> before = Infer(*MakePodInfo(event.before));
      const Result<features::FeatureSet> after = Infer(*MakePodInfo(event.after));
      return !before.ok() || !after.ok() || !(*before == *after);
    }
    case EventKind::kClaimAdd:
    case EventKind::kClaimUpdate:
    case EventKind::kClaimDelete:
      return IsAllocated(event.before) != IsAllocated(event.after) &&
             Uses(pod, event.after != nullptr ? event.after : event.before);
    default:
      return false;
  }
}

Status NodeDeclaredFeatures::PreFilter(Cycle& cycle) {
  Result<features::FeatureSet> required = Infer(*cycle.pod);
  if (!required.ok()) {
    return Status::Error(StrCat("inferring the pod's feature requirements: ",
                                required.error().message));
  }
  if (required->IsEmpty()) return Status::Skip();
  auto state = std::make_unique<Required>();
  state->features = std::move(*required);
  cycle.states[id] = std::move(state);
  return Status::Success();
}

void NodeDeclaredFeatures::RefreshGroups() {
  const NodeTable& nodes = options_.nodes;
  if (seen_version_ == nodes.declared_version()) return;
  group_of_.resize(nodes.size(), kNoGroup);
  for (Group& group : groups_) group.nodes.Resize(nodes.size());
  const std::vector<std::uint64_t>& versions = nodes.declared_versions();
  for (NodeIndex node = 0; node < versions.size(); ++node) {
    if (versions[node] <= seen_version_) continue;
    if (group_of_[node] != kNoGroup) groups_[group_of_[node]].nodes.Remove(node);
    group_of_[node] = kNoGroup;
    if (!nodes.known().Contains(node)) continue;
    features::FeatureSet set = options_.framework.MapNodeFeatures(nodes.object(node)->root());
    const auto [at, is_new] = group_by_set_.try_emplace(
        set.ToString(), static_cast<std::uint32_t>(groups_.size()));
    if (is_new) {
      groups_.push_back({std::move(set), {}});
      groups_.back().nodes.Resize(nodes.size());
    }
    group_of_[node] = at->second;
    groups_[at->second].nodes.Add(node);
  }
  seen_version_ = nodes.declared_version();
}

Status NodeDeclaredFeatures::Filter(Cycle& cycle, NodeSet& nodes) {
  RefreshGroups();
  const features::FeatureSet& required = static_cast<Required&>(*cycle.states[id]).features;
  for (const Group& group : groups_) {
    if (!required.IsSubsetOf(group.features)) nodes.RemoveAll(group.nodes);
  }
  return Status::Success();
}

void NodeDeclaredFeatures::Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) {
  const features::FeatureSet& required = static_cast<Required&>(*cycle.states[id]).features;
  for (const Group& group : groups_) {
    NodeSet here = rejected;
    here.IntersectWith(group.nodes);
    const std::size_t count = here.Count();
    if (count == 0) continue;
    const auto match = options_.framework.MatchNodeFeatureSet(required, group.features);
    diagnosis.Count(features::UnmatchedNodeMessage(match.value().unsatisfied), count);
  }
}

}  // namespace drakkar::scheduler
