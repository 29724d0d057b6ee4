#pragma once

#include "scheduler/framework/plugin.h"

namespace drakkar::scheduler {

// Keeps pods with scheduling gates out of the queue until the last gate is removed.
class SchedulingGates final : public Plugin {
 public:
  std::string_view name() const override { return "SchedulingGates"; }
  Points points() const override { return Point::kPreEnqueue | Points{0}; }
  EventMask events() const override { return MaskOf(EventKind::kTargetPodChange); }
  bool MayHelp(const PodInfo& pod, const ClusterEvent& event) override;
  Status PreEnqueue(const PodInfo& pod) override;
};

}  // namespace drakkar::scheduler
