#pragma once

#include <vector>

#include "scheduler/cache/placements.h"
#include "scheduler/cache/topology_domains.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/framework/plugin_context.h"

namespace drakkar::scheduler {

// Keeps pods together or apart: required pod affinity and anti-affinity, of the pod and, for
// anti-affinity, of the pods that already run. Preferences are ignored.
class InterPodAffinity final : public Plugin {
 public:
  explicit InterPodAffinity(const PluginContext& context)
      : nodes_(context.nodes), placements_(context.placements), domains_(context.nodes) {}

  EventMask events() const override {
    return MaskOf(EventKind::kNodeAdd, EventKind::kNodeLabel, EventKind::kBoundPodAdd,
                  EventKind::kBoundPodLabel, EventKind::kBoundPodRemove,
                  EventKind::kTargetPodChange);
  }
  bool MayHelp(const PodInfo& pod, const ClusterEvent& event) override;
  Status PreFilter(Cycle& cycle) override;
  Status Filter(Cycle& cycle, NodeSet& nodes) override;
  void Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) override;

 private:
  struct Verdicts;
  using Terms = std::vector<AffinityTerm>;
  // Domains in which a term matches a pod: by term, by domain.
  using Found = std::vector<std::vector<bool>>;

  // Notes that the term matches a pod on the node. False if the node is in no domain.
  bool NoteMatch(const AffinityTerm& term, NodeIndex node, std::vector<bool>& found);
  // The nodes in these domains.
  NodeSet NodesIn(const AffinityTerm& term, const std::vector<bool>& found);
  NodeSet NodesWithCompany(const PodInfo& pod);
  NodeSet NodesToAvoid(const PodInfo& pod);
  NodeSet NodesThatRepel(const PodInfo& pod);

  const NodeTable& nodes_;
  const Placements& placements_;
  TopologyDomainCache domains_;
};

}  // namespace drakkar::scheduler
