#include "apiserver/validation/pod_resize.h"

#include "api/meta/annotations.h"
#include "api/meta/quantity.h"
#include "api/tree/draft.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/pod_qos.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

bool IsResizable(std::string_view resource) {
  return resource == "cpu" || resource == "memory";
}

bool SameQuantity(Value a, Value b) {
  const auto left = api::Quantity::Parse(a.str());
  const auto right = api::Quantity::Parse(b.str());
  return left.ok() && right.ok() && left->Compare(*right) == 0;
}

bool IsZero(Value quantity) {
  const auto parsed = api::Quantity::Parse(quantity.str());
  return !quantity.has_value() || (parsed.ok() && parsed->Sign() == 0);
}

// Whether two lists of quantities are equal apart from what can be resized.
bool SameButForResizable(Value a, Value b) {
  const auto covers = [](Value one, Value other) {
    for (const auto& [key, name, value] : one.members()) {
      if (!IsResizable(name) && !SameQuantity(value, other.Entry(name))) return false;
    }
    return true;
  };
  return covers(a, b) && covers(b, a);
}

bool SameButForResizableIn(Value resources, Value before) {
  return SameButForResizable(resources["requests"], before["requests"]) &&
         SameButForResizable(resources["limits"], before["limits"]);
}

bool SameList(Value a, Value b) {
  return (a.empty() && b.empty()) || api::Equal(a, b);
}

bool SameQuantities(Value a, Value b) {
  const auto covers = [](Value one, Value other) {
    for (const auto& [key, name, value] : one.members()) {
      if (!SameQuantity(value, other.Entry(name))) return false;
    }
    return true;
  };
  return covers(a, b) && covers(b, a);
}

bool IsAnyRemoved(Value now, Value before) {
  for (const auto& [key, name, value] : before.members()) {
    if (!now.Entry(name).has_value()) return true;
  }
  return false;
}

bool HasQuantities(Value resources) {
  return !resources["requests"].empty() || !resources["limits"].empty();
}

void CheckRemovals(Value resources, Value before, const std::string& path, std::string_view what,
                   api::FieldErrors& errors) {
  for (const api::FieldName part : api::FieldNames{"requests", "limits"}) {
    if (!IsAnyRemoved(resources[part], before[part])) continue;
    errors.push_back(
        Forbidden(StrCat(path, ".", part), StrCat(what, " ", part, " cannot be removed")));
  }
}

bool CheckOrder(Value spec, Value before, api::FieldName list, api::FieldErrors& errors) {
  const Value now = spec[list];
  const Value then = before[list];
  if (now.size() != then.size()) {
    errors.push_back(
        Forbidden(StrCat("spec.", list), StrCat(list, " may not be added or removed on resize")));
    return false;
  }
  bool same = true;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now.at(i)["name"].str() == then.at(i)["name"].str()) continue;
    errors.push_back(Forbidden(StrCat("spec.", list, "[", i, "].name"),
                               StrCat(list, " may not be renamed or reordered on resize")));
    same = false;
  }
  return same;
}

void CheckContainer(Value container, Value before, api::FieldErrors& errors) {
  if (SameButForResizableIn(container["resources"], before["resources"]) &&
      SameList(container["resizePolicy"], before["resizePolicy"])) {
    return;
  }
  errors.push_back(Forbidden("spec", "only cpu and memory resources are mutable"));
}

void CheckInitContainer(Value container, Value before, std::size_t index, bool allowed,
                        api::FieldErrors& errors) {
  const std::string path = StrCat("spec.initContainers[", index, "]");
  const bool is_sidecar = before["restartPolicy"].str() == "Always";
  const bool same_policy = SameList(container["resizePolicy"], before["resizePolicy"]);
  const bool changes =
      !same_policy ||
      !SameQuantities(container["resources"]["requests"], before["resources"]["requests"]) ||
      !SameQuantities(container["resources"]["limits"], before["resources"]["limits"]);
  if (!is_sidecar && !allowed) {
    if (changes) {
      errors.push_back(
          Forbidden("spec", "resources for non-sidecar init containers are immutable"));
    }
    return;
  }
  CheckRemovals(container["resources"], before["resources"], path + ".resources", "resource",
                errors);
  if (!same_policy || !SameButForResizableIn(container["resources"], before["resources"])) {
    errors.push_back(Forbidden(
        path, "only cpu and memory resources for init or sidecar containers are mutable"));
  }
  if (is_sidecar || !changes) return;
  for (Value policy : container["resizePolicy"].elements()) {
    if (policy["restartPolicy"].str() != "RestartContainer") continue;
    errors.push_back(Forbidden(
        path,
        "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"));
  }
}

// The volume with the size limit of another.
api::TreePtr WithLimitOf(Value volume, Value other) {
  api::Draft draft(volume);
  api::Draft* directory = draft.Find("emptyDir");
  if (directory == nullptr || !other["emptyDir"].has_value()) return draft.Freeze();
  directory->Remove("sizeLimit");
  const Value limit = other["emptyDir"]["sizeLimit"];
  if (limit.has_value()) (*directory)["sizeLimit"] = api::Draft(limit);
  return draft.Freeze();
}

void CheckVolumes(Value spec, Value before, bool allowed, api::FieldErrors& errors) {
  const Value now = spec["volumes"];
  const Value then = before["volumes"];
  if (!allowed) {
    if (SameList(now, then)) return;
    errors.push_back(Forbidden("spec.volumes",
                               "volumes are immutable on resize when "
                               "InPlacePodVerticalScalingMemoryBackedVolumes feature gate is "
                               "disabled"));
    return;
  }
  if (now.size() != then.size()) {
    errors.push_back(Forbidden("spec.volumes", "volumes may not be added or removed on resize"));
    return;
  }
  for (std::size_t i = 0; i < now.size(); ++i) {
    const std::string path = StrCat("spec.volumes[", i, "]");
    const Value volume = now.at(i);
    const Value old = then.at(i);
    if (volume["name"].str() != old["name"].str()) {
      errors.push_back(
          Forbidden(path + ".name", "volumes may not be renamed or reordered on resize"));
      continue;
    }
    if (!api::Equal(WithLimitOf(volume, old)->root(), WithLimitOf(old, old)->root())) {
      errors.push_back(
          Forbidden(path, "only sizeLimit of memory-backed emptyDir volumes is mutable on resize"));
      continue;
    }
    const Value limit = volume["emptyDir"]["sizeLimit"];
    const Value old_limit = old["emptyDir"]["sizeLimit"];
    if (IsZero(limit) != IsZero(old_limit)) {
      errors.push_back(Forbidden(path + ".emptyDir.sizeLimit",
                                 "adding or removing sizeLimit on an existing volume is not "
                                 "allowed"));
    } else if (!IsZero(limit) && !SameQuantity(limit, old_limit) &&
               volume["emptyDir"]["medium"].str() != "Memory") {
      errors.push_back(Forbidden(path + ".emptyDir.sizeLimit",
                                 "sizeLimit is only mutable for memory-backed emptyDir volumes"));
    }
  }
}

// A node that supports resize reports the resources of running containers.
bool IsNodeAbleToResize(Value pod) {
  for (Value container : pod["status"]["containerStatuses"].elements()) {
    if (container["state"]["running"].has_value()) return container["resources"].has_value();
  }
  return true;
}

}  // namespace

api::FieldErrors ValidatePodResize(Value pod, Value before, const FeatureGates& gates) {
  if (!gates.Enabled(Gate::kInPlacePodVerticalScaling)) {
    return {Forbidden("spec",
                      "resize is forbidden when InPlacePodVerticalScaling feature gate is "
                      "disabled")};
  }
  if (before["metadata"]["annotations"].Entry(api::kMirrorAnnotation).has_value()) {
    return {Forbidden("spec", "static pods cannot be resized")};
  }
  if (before["spec"]["os"]["name"].str() == "windows") {
    return {Forbidden("spec", "windows pods cannot be resized")};
  }
  api::FieldErrors errors;
  const Value spec = pod["spec"];
  const Value old = before["spec"];
  if (QosClass(spec) != before["status"]["qosClass"].str(QosClass(old))) {
    errors.push_back(
        Invalid("spec", QosClass(spec), "Pod QOS Class may not change as a result of resizing"));
  }
  if (!IsNodeAbleToResize(before)) {
    errors.push_back(Forbidden("spec", "Pod running on node without support for resize"));
  }
  if (HasQuantities(spec["resources"]) || HasQuantities(old["resources"])) {
    if (!gates.Enabled(Gate::kInPlacePodLevelResourcesVerticalScaling)) {
      errors.push_back(Forbidden("spec",
                                 "resize of pods with pod-level resources is forbidden when "
                                 "InPlacePodLevelResourcesVerticalScalingEnabled feature gate is "
                                 "disabled"));
      return errors;
    }
    CheckRemovals(spec["resources"], old["resources"], "spec.resources", "pod-level resource",
                  errors);
    if (!SameButForResizableIn(spec["resources"], old["resources"])) {
      errors.push_back(Forbidden("spec", "only cpu and memory resources are mutable at pod-level"));
    }
  }
  const bool same_containers = CheckOrder(spec, old, "containers", errors);
  const bool same_init_containers = CheckOrder(spec, old, "initContainers", errors);
  if (!same_containers || !same_init_containers) return errors;
  const bool init_allowed = gates.Enabled(Gate::kInPlacePodVerticalScalingInitContainers);
  for (std::size_t i = 0; i < spec["initContainers"].size(); ++i) {
    CheckInitContainer(spec["initContainers"].at(i), old["initContainers"].at(i), i, init_allowed,
                       errors);
  }
  for (std::size_t i = 0; i < spec["containers"].size(); ++i) {
    const Value container = spec["containers"].at(i);
    const Value was = old["containers"].at(i);
    CheckRemovals(container["resources"], was["resources"],
                  StrCat("spec.containers[", i, "].resources"), "resource", errors);
    CheckContainer(container, was, errors);
  }
  CheckVolumes(spec, old, gates.Enabled(Gate::kInPlacePodVerticalScalingMemoryBackedVolumes),
               errors);
  return errors;
}

}  // namespace drakkar::apiserver
