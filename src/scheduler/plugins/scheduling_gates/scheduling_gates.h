#pragma once

#include "scheduler/framework/plugin.h"
#include "scheduler/framework/plugin_context.h"

namespace drakkar::scheduler {

// Keeps pods with scheduling gates out of the queue until the last gate is removed.
class SchedulingGates final : public Plugin {
 public:
  explicit SchedulingGates(const PluginContext&) {}
  EventMask events() const override { return MaskOf(EventKind::kTargetPodChange); }
  bool MayHelp(const PodInfo& pod, const ClusterEvent& event) override;
  Status PreEnqueue(const PodInfo& pod) override;
};

}  // namespace drakkar::scheduler
