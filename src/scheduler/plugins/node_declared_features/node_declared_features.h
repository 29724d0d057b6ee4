#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "features/framework/framework.h"
#include "scheduler/cache/claim_cache.h"
#include "scheduler/cache/node_table.h"
#include "scheduler/framework/plugin.h"

namespace drakkar::scheduler {

// Pods go only to nodes that declare every feature they need (KEP-5328). What a pod needs is
// inferred once, in PreFilter, from its spec, its status and its allocated claims; nodes that
// declare the same are one group, and Filter is one bitmap test for each group.
//
// Knows no feature itself: that is the framework's matter.
class NodeDeclaredFeatures final : public Plugin {
 public:
  struct Options {
    const NodeTable& nodes;
    const ClaimCache& claims;
    features::Framework framework;
    features::Version version;  // of this scheduler, the emulated one
  };
  explicit NodeDeclaredFeatures(Options options) : options_(std::move(options)) {}

  std::string_view name() const override { return "NodeDeclaredFeatures"; }
  Points points() const override { return Point::kPreFilter | Point::kFilter; }
  Code refusal() const override { return Code::kUnresolvable; }

  // A new node; a node that comes to satisfy the pod; a pod whose requirement changed; a claim of
  // the pod that was allocated or deallocated.
  EventMask events() const override {
    return MaskOf(EventKind::kNodeAdd, EventKind::kNodeDeclaredFeatures,
                  EventKind::kTargetPodChange, EventKind::kClaimAdd, EventKind::kClaimUpdate,
                  EventKind::kClaimDelete);
  }
  bool MayHelp(const PodInfo& pod, const ClusterEvent& event) override;

  Status PreFilter(Cycle& cycle) override;
  Status Filter(Cycle& cycle, NodeSet& nodes) override;
  void Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) override;

  // How many different declarations the nodes make: the cost of Filter.
  std::size_t group_count() const { return group_by_set_.size(); }

 private:
  struct Required : PluginState {
    features::FeatureSet features;
  };
  // Nodes that declare the same. A group that lost its nodes is used again for the next new
  // declaration, so that there are never more groups than nodes.
  struct Group {
    features::FeatureSet features;
    NodeSet nodes;  // while has_sets_
    std::size_t node_count = 0;
  };
  // With more groups than this their nodes are looked at one by one: a set of nodes for each group
  // would cost more, in time and in memory.
  static constexpr std::size_t kFewGroups = 64;

  Result<features::FeatureSet> Infer(const PodInfo& pod) const;
  // Takes over what nodes declare that have changed since the last call.
  void RefreshGroups();
  void Join(NodeIndex node);
  void Leave(NodeIndex node);
  // Begins anew, with sets of nodes.
  void Regroup();

  const Options options_;
  std::vector<Group> groups_;
  bool has_sets_ = true;                               // Group::nodes is kept; few groups only
  std::vector<std::uint32_t> unused_;                  // groups without nodes
  std::map<std::string, std::uint32_t> group_by_set_;  // FeatureSet::ToString
  std::vector<std::uint32_t> group_of_;                // by node; kNoGroup: none
  std::uint64_t seen_version_ = 0;                     // NodeTable::declared_version
  std::vector<std::size_t> by_group_;                  // scratch of Filter and Explain
};

}  // namespace drakkar::scheduler
