#include "controllers/daemon_set/placement.h"

#include "controllers/workload/tolerations.h"
#include "device/from_api.h"

namespace drakkar::controllers {

namespace {

using api::Value;

Value RequiredAffinity(Value pod_spec) {
  return pod_spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
}

// Daemon pods stay while their node has problems: they often are what the node needs to recover.
api::TreePtr WithDaemonTolerations(Value pod_spec) {
  api::Draft tolerations = api::Draft::Array();
  for (Value each : pod_spec["tolerations"].elements()) tolerations.Append(api::Draft(each));
  AddToleration(tolerations, "node.kubernetes.io/not-ready", "NoExecute");
  AddToleration(tolerations, "node.kubernetes.io/unreachable", "NoExecute");
  AddToleration(tolerations, "node.kubernetes.io/disk-pressure", "NoSchedule");
  AddToleration(tolerations, "node.kubernetes.io/memory-pressure", "NoSchedule");
  AddToleration(tolerations, "node.kubernetes.io/pid-pressure", "NoSchedule");
  AddToleration(tolerations, "node.kubernetes.io/unschedulable", "NoSchedule");
  if (pod_spec["hostNetwork"].boolean()) {
    AddToleration(tolerations, "node.kubernetes.io/network-unavailable", "NoSchedule");
  }
  return tolerations.Freeze();
}

}  // namespace

DaemonPlacement::DaemonPlacement(const api::Object& set)
    : tree_(set.tree()),
      spec_(set["spec"]["template"]["spec"]),
      tolerations_(WithDaemonTolerations(spec_)) {
  const Value required = RequiredAffinity(spec_);
  if (!required.has_value()) return;
  Result<device::NodeSelector> parsed = device::NodeSelectorFromApi(required);
  // Validation admits no such selector; without terms it matches no node.
  affinity_ = parsed.ok() ? std::move(*parsed) : device::NodeSelector();
}

bool DaemonPlacement::Selects(const api::Object& node) const {
  const std::string_view name = spec_["nodeName"].str();
  if (!name.empty() && name != node.name()) return false;
  const Value labels = node["metadata"]["labels"];
  for (const auto& [key, label, value] : spec_["nodeSelector"].members()) {
    if (!labels.Entry(label).exists() || labels.Entry(label).str() != value.str()) return false;
  }
  if (!affinity_) return true;
  const Result<bool> matches = device::Matches(*affinity_, node.root());
  return matches.ok() && *matches;
}

bool DaemonPlacement::ShouldRun(const api::Object& node) const {
  if (!Selects(node)) return false;
  for (Value taint : node["spec"]["taints"].elements()) {
    const std::string_view effect = taint["effect"].str();
    if (effect != "NoSchedule" && effect != "NoExecute") continue;
    if (!IsTolerated(tolerations_->root(), taint)) return false;
  }
  return true;
}

bool DaemonPlacement::MayStay(const api::Object& node) const {
  if (!Selects(node)) return false;
  for (Value taint : node["spec"]["taints"].elements()) {
    if (taint["effect"].str() != "NoExecute") continue;
    if (!IsTolerated(tolerations_->root(), taint)) return false;
  }
  return true;
}

std::string_view TargetNode(const api::Object& pod) {
  const std::string_view node = pod["spec"]["nodeName"].str();
  if (!node.empty()) return node;
  for (Value term : RequiredAffinity(pod["spec"])["nodeSelectorTerms"].elements()) {
    for (Value field : term["matchFields"].elements()) {
      if (field["key"].str() == "metadata.name" && field["operator"].str() == "In" &&
          field["values"].size() == 1) {
        return field["values"].at(0).str();
      }
    }
  }
  return {};
}

void AimAtNode(api::Draft& pod_spec, std::string_view node) {
  api::Draft values = api::Draft::Array();
  values.Append(node);
  api::Draft field = {{"key", "metadata.name"}, {"operator", "In"}, {"values", std::move(values)}};
  api::Draft term = api::Draft::Object();
  term["matchFields"].Append(std::move(field));
  api::Draft terms = api::Draft::Array();
  terms.Append(std::move(term));
  pod_spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
          ["nodeSelectorTerms"] = std::move(terms);
}

}  // namespace drakkar::controllers
