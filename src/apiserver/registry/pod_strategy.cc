#include "apiserver/registry/pod_strategy.h"

#include <set>

#include "api/meta/quantity.h"
#include "api/tree/draft_view.h"
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

void SetIfEmpty(Draft& object, api::FieldName member, std::string_view text) {
  Draft& slot = object[member];
  if (slot.str().empty()) slot = text;
}

void DefaultProbe(Draft& container, api::FieldName name) {
  Draft* probe = container.Find(name);
  if (probe == nullptr || !probe->is_object()) return;
  for (const auto& [field, value] : {std::pair(api::FieldName("timeoutSeconds"), 1),
                                     std::pair(api::FieldName("periodSeconds"), 10),
                                     std::pair(api::FieldName("successThreshold"), 1),
                                     std::pair(api::FieldName("failureThreshold"), 3)}) {
    if ((*probe)[field].integer() == 0) (*probe)[field] = value;
  }
  if (Draft* http = probe->Find("httpGet"); http != nullptr && http->is_object()) {
    SetIfEmpty(*http, "path", "/");
    SetIfEmpty(*http, "scheme", "HTTP");
  }
}

// Untagged and ":latest" images are pulled again, others only when missing.
std::string_view DefaultPullPolicy(std::string_view image) {
  if (image.find('@') != std::string_view::npos) return "IfNotPresent";
  const std::size_t slash = image.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? image : image.substr(slash + 1);
  const std::size_t colon = last.rfind(':');
  const bool latest = colon == std::string_view::npos || last.substr(colon + 1) == "latest";
  return latest ? "Always" : "IfNotPresent";
}

void DefaultContainer(Draft& container) {
  SetIfEmpty(container, "terminationMessagePath", "/dev/termination-log");
  SetIfEmpty(container, "terminationMessagePolicy", "File");
  SetIfEmpty(container, "imagePullPolicy", DefaultPullPolicy(container["image"].str()));
  SetIfAbsent(container, "resources", Draft::Object());
  Draft& resources = container["resources"];
  // A limit without a request asks for as much as it allows.
  if (Draft* limits = resources.Find("limits"); limits != nullptr && limits->is_object()) {
    for (auto& [key, quantity] : limits->MutableMembers()) {
      Draft& request = resources["requests"].Entry(key->view());
      if (!request.has_value()) request = std::string(quantity.str());
    }
  }
  if (Draft* ports = container.Find("ports"); ports != nullptr && ports->is_array()) {
    for (Draft& port : ports->MutableElements()) SetIfEmpty(port, "protocol", "TCP");
  }
  if (Draft* env = container.Find("env"); env != nullptr && env->is_array()) {
    for (Draft& variable : env->MutableElements()) {
      if (Draft* source = variable.Find("valueFrom")) {
        if (Draft* field = source->Find("fieldRef")) SetIfEmpty(*field, "apiVersion", "v1");
      }
    }
  }
  for (const api::FieldName probe :
       api::FieldNames{"livenessProbe", "readinessProbe", "startupProbe"}) {
    DefaultProbe(container, probe);
  }
}

void DefaultVolume(Draft& volume) {
  for (const api::FieldName source :
       api::FieldNames{"configMap", "secret", "downwardAPI", "projected"}) {
    Draft* content = volume.Find(source);
    if (content != nullptr && content->is_object()) SetIfAbsent(*content, "defaultMode", 0644);
  }
  if (Draft* host = volume.Find("hostPath"); host != nullptr && host->is_object()) {
    SetIfAbsent(*host, "type", "");
  }
}

// With the gate ContainerRestartRules off, restart policies and rules of single containers are
// dropped; sidecars, which have a policy too, stay what they are.
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

// With the gate VolumeBindMountOptions off, mount options are dropped, unless the pod has some
// already.
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

// Of a resize only the requests and limits of containers and of the pod as a whole count, and the
// volumes; everything else stays. What of it may really be changed is for validation to say, which
// also sees containers that came, went or moved.
void KeepAllButResources(Draft& object, Value before) {
  const api::TreePtr asked = object.Freeze();
  const Value wanted = asked->root()["spec"];
  Draft resized(before);
  Draft& spec = resized["spec"];
  // A client that does not know the field leaves it as it is.
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
  SetIfEmpty(spec, "restartPolicy", "Always");
  SetIfEmpty(spec, "dnsPolicy", "ClusterFirst");
  SetIfEmpty(spec, "schedulerName", "default-scheduler");
  SetIfAbsent(spec, "terminationGracePeriodSeconds", 30);
  SetIfAbsent(spec, "securityContext", Draft::Object());
  SetIfAbsent(spec, "enableServiceLinks", true);
  for (const api::FieldName list : kContainerLists) {
    Draft* containers = spec.Find(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (Draft& container : containers->MutableElements()) DefaultContainer(container);
  }
  if (Draft* volumes = spec.Find("volumes"); volumes != nullptr && volumes->is_array()) {
    for (Draft& volume : volumes->MutableElements()) DefaultVolume(volume);
  }
}

void PodStrategy::PrepareForCreate(Draft& object, const StrategyContext& context) const {
  DropDisabledRestartRules(object, context.gates);
  DropDisabledMountOptions(object, Value(), context.gates);
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
    // Whoever writes the status does not decide who owns the pod, nor its class of service.
    Draft& metadata = object["metadata"];
    const Value owners = before["metadata"]["ownerReferences"];
    if (owners.exists()) {
      metadata["ownerReferences"] = Draft(owners);
    } else {
      metadata.Remove("ownerReferences");
    }
    const Value qos = before["status"]["qosClass"];
    if (qos.has_value()) object["status"]["qosClass"] = qos.str();
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
  // Nobody would end a grace period of a pod that no node has, or that has ended.
  const std::string_view phase = object["status"]["phase"].str();
  if (object["spec"]["nodeName"].str().empty()) return 0;
  if (phase == "Failed" || phase == "Succeeded") return 0;
  const std::int64_t period =
      asked.value_or(object["spec"]["terminationGracePeriodSeconds"].integer(30));
  // A negative period means: as soon as possible, but through the node.
  return period < 0 ? 1 : period;
}

}  // namespace drakkar::apiserver
