#pragma once

#include "api/tree/value.h"
#include "scheduler/cache/node_condition.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/framework/plugin_context.h"
#include "scheduler/plugins/node_affinity/node_affinity_args.h"

namespace drakkar::scheduler {

// The pod's nodeSelector and its required and preferred node affinity, and the node affinity that
// the profile adds to every pod.
class NodeAffinity final : public Plugin {
 public:
  using Args = NodeAffinityArgs;

  explicit NodeAffinity(const PluginContext& context, const Args& args = {});
  EventMask events() const override {
    return MaskOf(EventKind::kNodeAdd, EventKind::kNodeLabel, EventKind::kTargetPodChange);
  }
  bool MayHelp(const PodInfo& pod, const ClusterEvent& event) override;
  Status PreFilter(Cycle& cycle) override;
  Status Filter(Cycle& cycle, NodeSet& nodes) override;
  void Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) override;
  bool Score(Cycle& cycle, std::span<const NodeIndex> nodes,
             std::span<std::int64_t> scores) override;

 private:
  const NodeSet& MatchingTerms(api::Value required);
  void AddPoints(api::Value preferred, std::span<const NodeIndex> nodes,
                 std::span<std::int64_t> scores);

  const NodeTable& nodes_;
  const api::TreePtr added_;
  const api::Value added_required_, added_preferred_;
  NodeMatches matches_{nodes_};
};

}  // namespace drakkar::scheduler
