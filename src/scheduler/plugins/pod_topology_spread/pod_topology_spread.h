#pragma once

#include <vector>

#include "scheduler/cache/node_condition.h"
#include "scheduler/cache/topology_counts.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/framework/plugin_context.h"
#include "scheduler/plugins/pod_topology_spread/pod_topology_spread_args.h"
#include "scheduler/plugins/pod_topology_spread/spread_constraint.h"

namespace drakkar::scheduler {

// Spreads the pods of a workload over zones, nodes or any other domain: DoNotSchedule constraints
// filter, ScheduleAnyway constraints score.
//
// Pods that are bound or being bound count; those that are only nominated do not. Constraints for
// pods that have none (defaultConstraints) are not supported, because they take their selector from
// Services and ReplicaSets.
class PodTopologySpread final : public Plugin {
 public:
  using Args = PodTopologySpreadArgs;

  explicit PodTopologySpread(const PluginContext& context, const Args& = {})
      : nodes_(context.nodes),
        counts_(context.nodes, context.placements),
        matches_(context.nodes),
        comparisons_(context.comparisons()) {}

  EventMask events() const override {
    return MaskOf(EventKind::kNodeAdd, EventKind::kNodeRemove, EventKind::kNodeLabel,
                  EventKind::kNodeTaint, EventKind::kBoundPodAdd, EventKind::kBoundPodLabel,
                  EventKind::kBoundPodRemove, EventKind::kTargetPodChange);
  }
  bool MayHelp(const PodInfo& pod, const ClusterEvent& event) override;
  Status PreFilter(Cycle& cycle) override;
  Status Filter(Cycle& cycle, NodeSet& nodes) override;
  void Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) override;
  bool Score(Cycle& cycle, std::span<const NodeIndex> nodes,
             std::span<std::int64_t> scores) override;

 private:
  struct Spread;
  enum class Verdict { kFits, kNoLabel, kSkewed };

  // The known nodes that have every topology key.
  NodeSet WithAllKeys(const std::vector<SpreadConstraint>& constraints);
  // How many pods of each node the constraint counts.
  const std::vector<std::int64_t>& PodsPerNode(const SpreadConstraint& constraint,
                                               std::string_view ns);
  // Removes the nodes that the constraint does not count.
  void KeepCounted(const SpreadConstraint& constraint, const PodInfo& pod, NodeSet& nodes);
  Verdict Judge(const Spread& spread, NodeIndex node) const;
  // Adds the points of a soft constraint to `points`.
  void AddPoints(const SpreadConstraint& constraint, const NodeSet& with_keys, const PodInfo& pod,
                 std::span<const NodeIndex> nodes, std::span<double> points);

  const NodeTable& nodes_;
  TopologyCounts counts_;
  NodeMatches matches_;
  const Comparisons comparisons_;
};

}  // namespace drakkar::scheduler
