#include "apiserver/registry/pod_strategy.h"

#include <set>

#include "api/meta/quantity.h"
#include "api/tree/draft_view.h"
#include "api/tree/member_index.h"
#include "apiserver/registry/label_keys.h"
#include "apiserver/registry/pod_template.h"
#include "apiserver/validation/pod.h"
#include "apiserver/validation/pod_qos.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::Value;

constexpr api::FieldName kContainerLists[] = {"initContainers", "containers",
                                              "ephemeralContainers"};

void SetIfAbsent(Draft& object, api::FieldName member, Draft value) {
  Draft& slot = object[member];
  if (!slot.has_value()) slot = std::move(value);
}

// A missing request defaults to the limit.
void DefaultRequests(Draft& container) {
  Draft& resources = container["resources"];
  Draft* limits = resources.Find("limits");
  if (limits == nullptr || !limits->is_object()) return;
  Draft::Members& given = limits->MutableMembers();
  if (given.empty()) return;
  api::MemberIndex requests(resources["requests"]);
  for (auto& [key, quantity] : given) {
    Draft& request = requests.Entry(key->view());
    if (!request.has_value()) request = std::string(quantity.str());
  }
}

// With hostNetwork, hostPort defaults to containerPort.
void DefaultHostPorts(Draft& container) {
  Draft* ports = container.Find("ports");
  if (ports == nullptr || !ports->is_array()) return;
  for (Draft& port : ports->MutableElements()) {
    if (port["hostPort"].integer() == 0) port["hostPort"] = port["containerPort"].integer();
  }
}

// With the gate ContainerRestartRules off, restart policies and rules of single containers are
// dropped. Sidecars, which have a policy too, are unaffected.
void DropDisabledRestartRules(Draft& object, const FeatureGates& gates) {
  if (gates.Enabled(Gate::kContainerRestartRules)) return;
  for (const api::FieldName list : api::FieldNames{"initContainers", "containers"}) {
    Draft* containers = object["spec"].Find(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (Draft& container : containers->MutableElements()) {
      container.Remove("restartPolicyRules");
      if (list == "containers") container.Remove("restartPolicy");
    }
  }
}

bool HasMountOptions(Value spec) {
  for (const api::FieldName list : kContainerLists) {
    for (Value container : spec[list].elements()) {
      for (Value mount : container["volumeMounts"].elements()) {
        if (!mount["bindMountOptions"].empty()) return true;
      }
    }
  }
  return false;
}

// With the gate VolumeBindMountOptions off, mount options are dropped unless the pod already has
// some.
void DropDisabledMountOptions(Draft& object, Value before, const FeatureGates& gates) {
  if (gates.Enabled(Gate::kVolumeBindMountOptions) || HasMountOptions(before["spec"])) return;
  Draft* spec = object.Find("spec");
  if (spec == nullptr || !spec->is_object()) return;
  for (const api::FieldName list : kContainerLists) {
    Draft* containers = spec->Find(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (Draft& container : containers->MutableElements()) {
      Draft* mounts = container.Find("volumeMounts");
      if (mounts == nullptr || !mounts->is_array()) continue;
      for (Draft& mount : mounts->MutableElements()) {
        if (mount.Has("bindMountOptions")) mount.Remove("bindMountOptions");
      }
    }
  }
}

void TakeRequestsAndLimits(Draft& resources, Value wanted) {
  for (const api::FieldName part : api::FieldNames{"requests", "limits"}) {
    if (wanted[part].has_value()) {
      resources[part] = Draft(wanted[part]);
    } else {
      resources.Remove(part);
    }
  }
}

bool HasSameNames(Value a, Value b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a.at(i)["name"].str() != b.at(i)["name"].str()) return false;
  }
  return true;
}

void TakeMember(Draft& into, Value from, api::FieldName member) {
  if (from[member].has_value()) {
    into[member] = Draft(from[member]);
  } else {
    into.Remove(member);
  }
}

// A resize takes over only requests and limits, of containers and of the pod as a whole, and the
// volumes; everything else is kept. Validation decides which of these may change, and sees
// containers that were added, removed or moved.
void KeepAllButResources(Draft& object, Value before) {
  const api::TreePtr asked = object.Freeze();
  const Value wanted = asked->root()["spec"];
  Draft resized(before);
  Draft& spec = resized["spec"];
  // A client that does not know the field leaves it unchanged.
  if (const Value of_pod = wanted["resources"]; of_pod.has_value()) {
    TakeRequestsAndLimits(spec["resources"], of_pod);
  }
  for (const api::FieldName list : api::FieldNames{"initContainers", "containers"}) {
    if (!HasSameNames(wanted[list], before["spec"][list])) {
      TakeMember(spec, wanted, list);
      continue;
    }
    for (std::size_t i = 0; i < wanted[list].size(); ++i) {
      TakeRequestsAndLimits(spec[list].at(i)["resources"], wanted[list].at(i)["resources"]);
      TakeMember(spec[list].at(i), wanted[list].at(i), "resizePolicy");
    }
  }
  TakeMember(spec, wanted, "volumes");
  object = std::move(resized);
  object.KeepAlive(asked);
}

// A client that does not know these members must not remove them by leaving them out.
void KeepClaimStatuses(Draft& status, Value before) {
  for (const api::FieldName member :
       api::FieldNames{"resourceClaimStatuses", "extendedResourceClaimStatus",
                       "nodeAllocatableResourceClaimStatuses"}) {
    if (before[member].has_value() && !status[member].has_value()) {
      status[member] = Draft(before[member]);
    }
  }
}

void KeepAllButEphemeralContainers(Draft& object, Value before) {
  const api::TreePtr asked = object.Freeze();
  Draft extended(before);
  const Value wanted = asked->root()["spec"]["ephemeralContainers"];
  if (wanted.has_value()) {
    extended["spec"]["ephemeralContainers"] = Draft(wanted);
  } else {
    extended["spec"].Remove("ephemeralContainers");
  }
  object = std::move(extended);
  object.KeepAlive(asked);
}

}  // namespace

void PodStrategy::Default(Draft& object, const StrategyContext&) const {
  Draft& spec = object["spec"];
  if (!spec.is_object()) return;
  DefaultPodSpec(spec);
  SetIfAbsent(spec, "enableServiceLinks", true);
  const bool host_network = spec["hostNetwork"].boolean();
  for (const api::FieldName list : api::FieldNames{"initContainers", "containers"}) {
    Draft* containers = spec.Find(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (Draft& container : containers->MutableElements()) {
      DefaultRequests(container);
      if (host_network) DefaultHostPorts(container);
    }
  }
}

void PodStrategy::PrepareForCreate(Draft& object, const StrategyContext& context) const {
  DropDisabledRestartRules(object, context.gates);
  DropDisabledMountOptions(object, Value(), context.gates);
  MergeLabelKeys(object);
  Draft& spec = object["spec"];
  const std::string_view qos = QosClass(api::DraftView(spec).root());
  Draft& status = object["status"];
  status = Draft::Object();
  status["phase"] = "Pending";
  status["qosClass"] = qos;
  const Draft* const gates = object["spec"].Find("schedulingGates");
  if (gates != nullptr && gates->size() > 0) {
    Draft condition = Draft::Object();
    condition["type"] = "PodScheduled";
    condition["status"] = "False";
    condition["reason"] = "SchedulingGated";
    condition["message"] = "Scheduling is blocked due to non-empty scheduling gates";
    condition["lastProbeTime"] = nullptr;
    condition["lastTransitionTime"] = nullptr;
    object["status"]["conditions"].Append(std::move(condition));
  }
}

void PodStrategy::PrepareForUpdate(Draft& object, Value before, std::string_view subresource,
                                   const StrategyContext& context) const {
  if (subresource == "ephemeralcontainers") KeepAllButEphemeralContainers(object, before);
  if (subresource == "resize") {
    KeepAllButResources(object, before);
    DropDisabledMountOptions(object, before, context.gates);
    return;
  }
  if (subresource != "status") DropDisabledMountOptions(object, before, context.gates);
  if (subresource == "status") {
    // A status update changes neither the pod's owners nor its QoS class.
    Draft& metadata = object["metadata"];
    const Value owners = before["metadata"]["ownerReferences"];
    if (owners.exists()) {
      metadata["ownerReferences"] = Draft(owners);
    } else {
      metadata.Remove("ownerReferences");
    }
    const Value qos = before["status"]["qosClass"];
    if (qos.has_value()) object["status"]["qosClass"] = qos.str();
    KeepClaimStatuses(object["status"], before["status"]);
    if (!context.gates.Enabled(Gate::kDRAExtendedResource) &&
        !before["status"]["extendedResourceClaimStatus"].has_value()) {
      object["status"].Remove("extendedResourceClaimStatus");
    }
  }
}

api::FieldErrors PodStrategy::Validate(Value object, const StrategyContext& context) const {
  return ValidatePod(object, context);
}

api::FieldErrors PodStrategy::ValidateUpdate(Value object, Value before,
                                             std::string_view subresource,
                                             const StrategyContext& context) const {
  if (subresource == "status") return ValidatePodStatusUpdate(object, before, context);
  return ValidatePodUpdate(object, before, subresource, context);
}

std::optional<std::int64_t> PodStrategy::GracePeriod(Value object,
                                                     std::optional<std::int64_t> asked) const {
  // There is no one to complete the grace period of a pod that is not bound or has ended.
  const std::string_view phase = object["status"]["phase"].str();
  if (object["spec"]["nodeName"].str().empty()) return 0;
  if (phase == "Failed" || phase == "Succeeded") return 0;
  const std::int64_t period =
      asked.value_or(object["spec"]["terminationGracePeriodSeconds"].integer(30));
  // A negative period means as soon as possible, but still through the node.
  return period < 0 ? 1 : period;
}

}  // namespace drakkar::apiserver
