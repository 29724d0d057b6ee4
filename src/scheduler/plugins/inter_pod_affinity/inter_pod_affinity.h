#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "scheduler/cache/topology_counts.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/framework/plugin_context.h"
#include "scheduler/plugins/inter_pod_affinity/placed_terms.h"

namespace drakkar::scheduler {

// Places pods near other pods (podAffinity) or away from them (podAntiAffinity). Required terms
// filter; preferred ones score. The anti-affinity of pods that are already placed keeps new pods
// away, too.
//
// Pods that are bound or being bound count; those that are only nominated do not.
class InterPodAffinity final : public Plugin {
 public:
  explicit InterPodAffinity(const PluginContext& context)
      : nodes_(context.nodes),
        namespaces_(context.namespaces),
        counts_(context.nodes, context.placements),
        placed_(context.placements) {}

  EventMask events() const override {
    return MaskOf(EventKind::kNodeAdd, EventKind::kNodeLabel, EventKind::kBoundPodAdd,
                  EventKind::kBoundPodLabel, EventKind::kBoundPodRemove,
                  EventKind::kTargetPodChange, EventKind::kNamespaceLabel);
  }
  bool MayHelp(const PodInfo& pod, const ClusterEvent& event) override;
  Status PreFilter(Cycle& cycle) override;
  Status Filter(Cycle& cycle, NodeSet& nodes) override;
  void Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) override;
  bool Score(Cycle& cycle, std::span<const NodeIndex> nodes,
             std::span<std::int64_t> scores) override;

 private:
  struct Needs;
  struct Domains;
  enum class Verdict { kFits, kAffinity, kAntiAffinity, kPlacedAntiAffinity };

  // The number of pods matched by all of `terms` in each domain of `topology_key`.
  Domains CountByDomain(const std::string& topology_key, std::span<const AffinityTerm> terms);
  void ForEachHolder(const PlacedTerms::Entry& entry,
                     const std::function<void(NodeIndex, int)>& visit) const;
  // The nodes that share a domain with a placed pod whose anti-affinity matches the pod.
  NodeSet FindBlocked(const PodInfo& pod);
  Verdict Judge(const Needs& needs, NodeIndex node) const;

  const NodeTable& nodes_;
  const NamespaceLabels& namespaces_;
  TopologyCounts counts_;
  PlacedTerms placed_;
};

}  // namespace drakkar::scheduler
