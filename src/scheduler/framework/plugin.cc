#include "scheduler/framework/plugin.h"

#include "base/result/check.h"
#include "features/gates/feature_gates.h"
#include "scheduler/framework/plugin_context.h"

namespace drakkar::scheduler {

Comparisons PluginContext::comparisons() const {
  return gates.Enabled(Gate::kTaintTolerationComparisonOperators) ? Comparisons::kAllowed
                                                                  : Comparisons::kIgnored;
}

std::string_view EventName(EventKind kind) {
  switch (kind) {
    case EventKind::kNodeAdd:
      return "NodeAdd";
    case EventKind::kNodeRemove:
      return "NodeDelete";
    case EventKind::kNodeAllocatable:
      return "NodeAllocatableChange";
    case EventKind::kNodeLabel:
      return "NodeLabelChange";
    case EventKind::kNodeTaint:
      return "NodeTaintChange";
    case EventKind::kNodeDeclaredFeatures:
      return "NodeDeclaredFeatureChange";
    case EventKind::kBoundPodAdd:
      return "AssignedPodAdd";
    case EventKind::kBoundPodLabel:
      return "AssignedPodUpdate";
    case EventKind::kBoundPodRemove:
      return "AssignedPodDelete";
    case EventKind::kBoundPodShrink:
      return "AssignedPodUpdate";
    case EventKind::kTargetPodChange:
      return "PodUpdate";
    case EventKind::kClaimAdd:
      return "ResourceClaimAdd";
    case EventKind::kClaimUpdate:
      return "ResourceClaimUpdate";
    case EventKind::kClaimDelete:
      return "ResourceClaimDelete";
    case EventKind::kSliceChange:
      return "ResourceSliceUpdate";
    case EventKind::kClassChange:
      return "DeviceClassUpdate";
    case EventKind::kPodGroupChange:
      return "PodGroupUpdate";
    case EventKind::kNamespaceLabel:
      return "NamespaceUpdate";
    case EventKind::kCount:
      break;
  }
  return "";
}

// Only the notifications are called on plugins that do not override them.
bool Plugin::MayHelp(const PodInfo&, const ClusterEvent&) {
  return true;
}
Status Plugin::PreEnqueue(const PodInfo&) {
  return Status::Success();
}
Status Plugin::PreFilter(Cycle&) {
  return Status::Success();
}
Status Plugin::Filter(Cycle&, NodeSet&) {
  return Status::Success();
}
void Plugin::Explain(Cycle&, const NodeSet& rejected, Diagnosis& diagnosis) {
  diagnosis.Count(name(), rejected.Count());
}
Status Plugin::PostFilter(Cycle&) {
  return Status::Success();
}
void Plugin::Prefer(Cycle&, NodeSet&) {}
bool Plugin::Score(Cycle&, std::span<const NodeIndex>, std::span<std::int64_t>) {
  return false;
}
Status Plugin::Reserve(Cycle&) {
  return Status::Success();
}
void Plugin::Unreserve(Cycle&) {}
void Plugin::PreBind(CyclePtr, StatusCallback) {
  CHECK(false);
}
void Plugin::Cancel(Cycle&) {}
void Plugin::OnNodeLost(Cycle&, const std::string&) {}
void Plugin::OnClaimChanged(const std::string&) {}
void Plugin::ForgetPod(const std::string&) {}
void Plugin::Bind(CyclePtr, StatusCallback) {
  CHECK(false);
}

}  // namespace drakkar::scheduler
