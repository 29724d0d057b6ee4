#pragma once

#include "scheduler/framework/plugin.h"
#include "scheduler/framework/plugin_context.h"
#include "scheduler/plugins/node_resources/node_resources_args.h"

namespace drakkar::scheduler {

// Rejects nodes without enough free resources or pod slots. Extended resources that the pod gets as
// devices are left to DynamicResources. Prefers emptier nodes or, if so configured, fuller ones; by
// default cpu and memory have the same weight.
//
// Reads only the columns of requested resources. A pod without requests costs one set operation.
class NodeResourcesFit final : public Plugin {
 public:
  using Args = NodeResourcesFitArgs;

  explicit NodeResourcesFit(const PluginContext& context, Args args = {})
      : nodes_(context.nodes), devices_(context.devices), args_(std::move(args)) {}
  EventMask events() const override {
    return MaskOf(EventKind::kNodeAdd, EventKind::kNodeAllocatable, EventKind::kBoundPodRemove,
                  EventKind::kBoundPodShrink, EventKind::kTargetPodChange, EventKind::kClassChange);
  }
  bool MayHelp(const PodInfo& pod, const ClusterEvent& event) override;
  Status Filter(Cycle& cycle, NodeSet& nodes) override;
  void Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) override;
  bool Score(Cycle& cycle, std::span<const NodeIndex> nodes,
             std::span<std::int64_t> scores) override;

 private:
  // Whether nominated pods that take precedence over the pod count as placed.
  enum class Nominated { kCount, kIgnore };
  // Reports what is missing on one node; nothing if the pod fits.
  template <typename Report>
  void FindMissing(const PodInfo& pod, NodeIndex node, Nominated nominated_pods,
                   Report report) const;
  bool IsIgnored(std::string_view resource) const;
  bool ScoreByArgs(const PodInfo& pod, std::span<const NodeIndex> nodes,
                   std::span<std::int64_t> scores) const;

  const NodeTable& nodes_;
  const DeviceState& devices_;
  const Args args_;
};

}  // namespace drakkar::scheduler
