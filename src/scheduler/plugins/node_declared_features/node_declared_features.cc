#include "scheduler/plugins/node_declared_features/node_declared_features.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "base/text/text.h"
#include "claims/claim.h"
#include "features/declared.h"
#include "features/gates/feature_gates.h"

namespace drakkar::scheduler {

namespace {

constexpr std::uint32_t kNoGroup = ~std::uint32_t{0};

bool IsAllocated(const api::ObjectPtr& claim) {
  return claim != nullptr && claims::IsAllocated(claim->root());
}

bool Uses(const PodInfo& pod, const api::ObjectPtr& claim) {
  return claim->namespace_() == pod.ns() &&
         std::any_of(pod.claims.begin(), pod.claims.end(),
                     [&](const PodClaim& each) { return each.claim_name == claim->name(); });
}

}  // namespace

NodeDeclaredFeatures::NodeDeclaredFeatures(const PluginContext& context)
    : NodeDeclaredFeatures(Options{.nodes = context.nodes,
                                   .claims = context.claims,
                                   .framework = context.declared_features,
                                   .version = features::VersionOf(context.gates.emulated())}) {}

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
      // If inference fails, another attempt reports the reason.
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
    return Status::Error(
        StrCat("inferring the pod's feature requirements: ", required.error().message));
  }
  if (required->IsEmpty()) return Status::Skip();
  auto state = std::make_unique<Required>();
  state->features = std::move(*required);
  cycle.states[id()] = std::move(state);
  return Status::Success();
}

void NodeDeclaredFeatures::Leave(NodeIndex node) {
  const std::uint32_t index = std::exchange(group_of_[node], kNoGroup);
  if (index == kNoGroup) return;
  Group& group = groups_[index];
  if (has_sets_) group.nodes.Remove(node);
  if (--group.node_count > 0) return;
  group_by_set_.erase(group.features.ToString());
  unused_.push_back(index);
}

void NodeDeclaredFeatures::Join(NodeIndex node) {
  features::FeatureSet set =
      options_.framework.MapNodeFeatures(options_.nodes.object(node)->root());
  const auto [at, is_new] = group_by_set_.try_emplace(set.ToString(), kNoGroup);
  if (is_new) {
    if (unused_.empty()) {
      unused_.push_back(static_cast<std::uint32_t>(groups_.size()));
      groups_.emplace_back();
      if (has_sets_ && groups_.size() > kFewGroups) {
        has_sets_ = false;
        for (Group& group : groups_) group.nodes = NodeSet();
      }
      if (has_sets_) groups_.back().nodes.Resize(options_.nodes.size());
    }
    at->second = unused_.back();
    unused_.pop_back();
    groups_[at->second].features = std::move(set);
  }
  Group& group = groups_[at->second];
  if (has_sets_) group.nodes.Add(node);
  ++group.node_count;
  group_of_[node] = at->second;
}

void NodeDeclaredFeatures::Regroup() {
  groups_.clear();
  unused_.clear();
  group_by_set_.clear();
  group_of_.assign(options_.nodes.size(), kNoGroup);
  has_sets_ = true;
  options_.nodes.known().ForEach([this](NodeIndex node) { Join(node); });
}

void NodeDeclaredFeatures::RefreshGroups() {
  const NodeTable& nodes = options_.nodes;
  if (seen_version_ == nodes.declared_version()) return;
  group_of_.resize(nodes.size(), kNoGroup);
  if (has_sets_) {
    for (Group& group : groups_) group.nodes.Resize(nodes.size());
  }
  const std::vector<std::uint64_t>& versions = nodes.declared_versions();
  for (NodeIndex node = 0; node < versions.size(); ++node) {
    if (versions[node] <= seen_version_) continue;
    Leave(node);
    if (nodes.known().Contains(node)) Join(node);
  }
  seen_version_ = nodes.declared_version();
  // With hysteresis, so that one declaration more or less does not trigger this every time.
  if (!has_sets_ && group_by_set_.size() <= kFewGroups / 2) Regroup();
}

Status NodeDeclaredFeatures::Filter(Cycle& cycle, NodeSet& nodes) {
  RefreshGroups();
  const features::FeatureSet& required = static_cast<Required&>(*cycle.states[id()]).features;
  if (has_sets_) {
    for (const Group& group : groups_) {
      if (group.node_count > 0 && !required.IsSubsetOf(group.features))
        nodes.RemoveAll(group.nodes);
    }
    return Status::Success();
  }
  by_group_.assign(groups_.size(), 0);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    by_group_[i] = groups_[i].node_count > 0 && required.IsSubsetOf(groups_[i].features);
  }
  for (std::size_t i = 0; i < nodes.word_count(); ++i) {
    std::uint64_t kept = nodes.word(i);
    for (std::uint64_t rest = kept; rest != 0; rest &= rest - 1) {
      const auto node = i * 64 + static_cast<std::size_t>(std::countr_zero(rest));
      if (by_group_[group_of_[node]] == 0) kept &= ~(rest & -rest);
    }
    nodes.set_word(i, kept);
  }
  return Status::Success();
}

void NodeDeclaredFeatures::Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) {
  const features::FeatureSet& required = static_cast<Required&>(*cycle.states[id()]).features;
  by_group_.assign(groups_.size(), 0);
  rejected.ForEach([&](NodeIndex node) { ++by_group_[group_of_[node]]; });
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (by_group_[i] == 0) continue;
    const auto match = options_.framework.MatchNodeFeatureSet(required, groups_[i].features);
    diagnosis.Count(features::UnmatchedNodeMessage(match.value().unsatisfied), by_group_[i]);
  }
}

}  // namespace drakkar::scheduler
