#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "features/framework/framework.h"
#include "scheduler/cache/claim_cache.h"
#include "scheduler/cache/node_table.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/framework/plugin_context.h"

namespace drakkar::scheduler {

// Places pods only on nodes that declare every feature they need (KEP-5328). A pod's needs are
// inferred once, in PreFilter, from its spec, its status and its allocated claims. Nodes with equal
// declarations form a group, and Filter does one bitmap test per group.
//
// The features themselves are defined in src/features.
class NodeDeclaredFeatures final : public Plugin {
 public:
  struct Options {
    const NodeTable& nodes;
    const ClaimCache& claims;
    features::Framework framework;
    features::Version version;  // (emulated) version of this scheduler
  };
  explicit NodeDeclaredFeatures(Options options) : options_(std::move(options)) {}
  explicit NodeDeclaredFeatures(const PluginContext& context);

  Code refusal() const override { return Code::kUnresolvable; }

  // A new node; a node that now satisfies the pod; a pod whose needs changed; a claim of the pod
  // that was allocated or deallocated.
  EventMask events() const override {
    return MaskOf(EventKind::kNodeAdd, EventKind::kNodeDeclaredFeatures,
                  EventKind::kTargetPodChange, EventKind::kClaimAdd, EventKind::kClaimUpdate,
                  EventKind::kClaimDelete);
  }
  bool MayHelp(const PodInfo& pod, const ClusterEvent& event) override;

  Status PreFilter(Cycle& cycle) override;
  Status Filter(Cycle& cycle, NodeSet& nodes) override;
  void Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) override;

  // Number of distinct declarations, which determines the cost of Filter.
  std::size_t group_count() const { return group_by_set_.size(); }

 private:
  struct Required : PluginState {
    features::FeatureSet features;
  };
  // Nodes with equal declarations. Groups without nodes are reused, so there are never more groups
  // than nodes.
  struct Group {
    features::FeatureSet features;
    NodeSet nodes;  // only if has_sets_
    std::size_t node_count = 0;
  };
  // With more groups than this, nodes are tested one by one: a NodeSet per group would cost more
  // time and memory.
  static constexpr std::size_t kFewGroups = 64;

  Result<features::FeatureSet> Infer(const PodInfo& pod) const;
  // Applies the declarations that changed since the last call.
  void RefreshGroups();
  void Join(NodeIndex node);
  void Leave(NodeIndex node);
  // Rebuilds the groups, with a NodeSet each.
  void Regroup();

  const Options options_;
  std::vector<Group> groups_;
  bool has_sets_ = true;  // Group::nodes is maintained; only while there are few groups
  std::vector<std::uint32_t> unused_;                  // groups without nodes
  std::map<std::string, std::uint32_t> group_by_set_;  // FeatureSet::ToString
  std::vector<std::uint32_t> group_of_;                // by node; kNoGroup: none
  std::uint64_t seen_version_ = 0;                     // last NodeTable::declared_version applied
  std::vector<std::size_t> by_group_;                  // scratch space for Filter and Explain
};

}  // namespace drakkar::scheduler
