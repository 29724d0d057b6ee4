#pragma once

#include "scheduler/framework/plugin.h"
#include "scheduler/framework/plugin_context.h"

namespace drakkar::scheduler {

// Rejects pods with requirements that are not supported, instead of ignoring them. Unsupported
// preferences are ignored, because a preference need not be met.
class UnsupportedFields final : public Plugin {
 public:
  explicit UnsupportedFields(const PluginContext& context) : context_(context) {}
  EventMask events() const override {
    return MaskOf(EventKind::kTargetPodChange, EventKind::kPodGroupChange);
  }
  Status PreFilter(Cycle& cycle) override;

 private:
  // Why the pod's PodGroup keeps it from being scheduled by itself; empty if it does not.
  std::string FindGroupProblem(const PodInfo& pod) const;

  const PluginContext& context_;
};

// The path of the first unsupported field, or empty.
std::string FindUnsupportedField(const PodInfo& pod);
// The path of a list that is too long to be compared with every node, and why; or empty. Terms of
// pod affinity have a limit of their own.
std::string FindOversizedField(const PodInfo& pod);

}  // namespace drakkar::scheduler
