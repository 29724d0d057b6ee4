#include "apiserver/validation/container.h"

#include <optional>

#include "apiserver/validation/cause.h"
#include "apiserver/validation/container_resources.h"
#include "apiserver/validation/projected_volume.h"
#include "apiserver/validation/security_context.h"
#include "apiserver/validation/value_rules.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::FieldPath;
using api::Value;

constexpr std::size_t kMaxRestartRules = 20;
constexpr std::size_t kMaxExitCodes = 255;

void CheckPorts(FieldErrors& errors, const FieldPath& path, Value ports) {
  std::set<std::string_view> names;
  std::size_t index = 0;
  for (const Value port : ports.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++);
    if (const std::string_view name = port["name"].str(); !name.empty()) {
      const std::size_t before = errors.size();
      CheckPortName(errors, at.Child("name"), name);
      if (errors.size() == before && !names.insert(name).second) {
        errors.push_back(Duplicate(at.Child("name"), name));
      }
    }
    const std::int64_t number = port["containerPort"].integer();
    if (number == 0) {
      errors.push_back(Required(at.Child("containerPort")));
    } else {
      CheckPortNumber(errors, at.Child("containerPort"), number);
    }
    const std::int64_t host_port = port["hostPort"].integer();
    if (host_port != 0) CheckPortNumber(errors, at.Child("hostPort"), host_port);
    RequireOneOf(errors, at.Child("protocol"), port["protocol"].str(), {"SCTP", "TCP", "UDP"});
  }
}

// The host ports in use by protocol and address.
class HostPorts {
 public:
  void Take(FieldErrors& errors, const FieldPath& path, Value ports) {
    std::size_t index = 0;
    for (const Value port : ports.elements()) {
      const FieldPath at = path.Index(index++).Child("hostPort");
      const std::int64_t number = port["hostPort"].integer();
      if (number == 0) continue;
      std::string use = StrCat(port["protocol"].str(), "/", port["hostIP"].str(), "/", number);
      const auto [taken, is_new] = taken_.insert(std::move(use));
      if (!is_new) errors.push_back(Duplicate(at, *taken));
    }
  }

 private:
  std::set<std::string> taken_;
};

void CheckKeySelector(FieldErrors& errors, const FieldPath& path, Value selector) {
  CheckDnsSubdomain(errors, path.Child("name"), selector["name"].str());
  const std::string_view key = selector["key"].str();
  if (key.empty()) {
    errors.push_back(Required(path.Child("key")));
  } else {
    AddProblems(errors, path.Child("key"), key, ConfigKeyProblems(key));
  }
}

// A variable from a file in an emptyDir.
void CheckFileSelector(FieldErrors& errors, const FieldPath& path, Value selector,
                       const ContainerContext& context) {
  const std::string_view key = selector["key"].str();
  if (key.empty()) {
    errors.push_back(Required(path.Child("key")));
  } else {
    CheckEnvironmentName(errors, path.Child("key"), key);
  }
  const std::string_view name = selector["volumeName"].str();
  const FieldPath volume_path = path.Child("volumeName");
  RequireDnsLabel(errors, volume_path, name);
  RequireText(errors, path.Child("path"), selector["path"].str());
  CheckNoBacksteps(errors, path.Child("path"), selector["path"].str());
  Value volume;
  WorkBudget::Charge(context.declared.size());
  for (const Value each : context.declared.elements()) {
    if (each["name"].str() == name) volume = each;
  }
  if (!volume.exists()) {
    errors.push_back(api::FieldError::NotFound(volume_path, name));
  } else if (!volume["emptyDir"].has_value()) {
    errors.push_back(Invalid(volume_path, name, "referenced volume must be of type emptyDir"));
  }
}

void CheckValueFrom(FieldErrors& errors, const FieldPath& path, Value variable,
                    const ContainerContext& context) {
  const Value from = variable["valueFrom"];
  if (!from.has_value()) return;
  std::size_t count = 0;
  const auto check = [&](api::FieldName field, auto rule) {
    if (!from[field].has_value()) return;
    ++count;
    rule(path.Child(field.view()), from[field]);
  };
  check("fieldRef", [&](const FieldPath& at, Value selector) {
    CheckFieldSelector(errors, at, selector, FieldUse::kVariable);
  });
  check("resourceFieldRef", [&](const FieldPath& at, Value selector) {
    CheckResourceSelector(errors, at, selector, FieldUse::kVariable);
  });
  const auto check_key = [&](const FieldPath& at, Value selector) {
    CheckKeySelector(errors, at, selector);
  };
  check("configMapKeyRef", check_key);
  check("secretKeyRef", check_key);
  check("fileKeyRef", [&](const FieldPath& at, Value selector) {
    CheckFileSelector(errors, at, selector, context);
  });
  if (count == 0) {
    errors.push_back(Invalid(path, "",
                             "must specify one of: `fieldRef`, `resourceFieldRef`, "
                             "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"));
  } else if (!variable["value"].str().empty()) {
    errors.push_back(Invalid(path, "", "may not be specified when `value` is not empty"));
  } else if (count > 1) {
    errors.push_back(Invalid(path, "", "may not have more than one field specified at a time"));
  }
}

void CheckEnvironment(FieldErrors& errors, const FieldPath& path, Value variables,
                      const ContainerContext& context) {
  std::size_t index = 0;
  for (const Value variable : variables.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++);
    if (const std::string_view name = variable["name"].str(); name.empty()) {
      errors.push_back(Required(at.Child("name")));
    } else {
      CheckEnvironmentName(errors, at.Child("name"), name);
    }
    CheckValueFrom(errors, at.Child("valueFrom"), variable, context);
  }
}

void CheckEnvironmentSources(FieldErrors& errors, const FieldPath& path, Value sources) {
  std::size_t index = 0;
  for (const Value source : sources.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++);
    const std::string_view prefix = source["prefix"].str();
    if (!prefix.empty()) CheckEnvironmentName(errors, at.Child("prefix"), prefix);
    std::size_t count = 0;
    for (const api::FieldName field : api::FieldNames{"configMapRef", "secretRef"}) {
      if (!source[field].has_value()) continue;
      ++count;
      RequireDnsSubdomain(errors, at.Child(field.view()).Child("name"),
                          source[field]["name"].str());
    }
    if (count == 1) continue;
    // The path is that of the list.
    errors.push_back(Invalid(path, "",
                             count == 0 ? "must specify one of: `configMapRef` or `secretRef`"
                                        : "may not have more than one field specified at a time"));
  }
}

// The mount options of a volume (gate VolumeBindMountOptions).
void CheckBindMountOptions(FieldErrors& errors, const FieldPath& path, Value mount,
                           const ContainerContext& context) {
  const Value options = mount["bindMountOptions"];
  std::set<std::string_view> seen;
  std::size_t index = 0;
  for (const Value option : options.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++);
    CheckOneOf(errors, at, option.str(), {"nodev", "noexec", "nosuid"});
    if (!seen.insert(option.str()).second) errors.push_back(Duplicate(at, option.str()));
  }
  const auto volume = context.volumes.find(mount["name"].str());
  if (!options.empty() && volume != context.volumes.end() && volume->second["image"].has_value()) {
    errors.push_back(Invalid(path, options, "bindMountOptions may not be used with image volumes"));
  }
}

// Some errors about a mount have the path of the list, as in Kubernetes.
void CheckMountModes(FieldErrors& errors, const FieldPath& list, Value mount, bool privileged) {
  const Value propagation = mount["mountPropagation"];
  if (propagation.has_value()) {
    const FieldPath at = list.Child("mountPropagation");
    CheckOneOf(errors, at, propagation.str(), {"Bidirectional", "HostToContainer", "None"});
    if (propagation.str() == "Bidirectional" && !privileged) {
      errors.push_back(Forbidden(
          at, "Bidirectional mount propagation is available only to privileged containers"));
    }
  }
  const Value recursive = mount["recursiveReadOnly"];
  if (!recursive.has_value() || recursive.str() == "Disabled") return;
  const FieldPath at = list.Child("recursiveReadOnly");
  if (recursive.str() != "Enabled" && recursive.str() != "IfPossible") {
    errors.push_back(NotSupported(at, recursive.str(), {"Disabled", "Enabled", "IfPossible"}));
    return;
  }
  if (!mount["readOnly"].boolean()) {
    errors.push_back(Forbidden(at, "may only be specified when readOnly is true"));
  }
  if (propagation.has_value() && propagation.str() != "None") {
    errors.push_back(
        Forbidden(at, "may only be specified when mountPropagation is None or not specified"));
  }
}

void CheckMounts(FieldErrors& errors, const FieldPath& path, Value container,
                 const ContainerContext& context) {
  const bool privileged = container["securityContext"]["privileged"].boolean();
  std::set<std::string_view> device_names, device_paths, mount_paths;
  for (const Value device : container["volumeDevices"].elements()) {
    device_names.insert(device["name"].str());
    device_paths.insert(device["devicePath"].str());
  }
  std::size_t index = 0;
  for (const Value mount : container["volumeMounts"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++);
    const std::string_view name = mount["name"].str();
    const std::string_view target = mount["mountPath"].str();
    RequireText(errors, at.Child("name"), name);
    if (!context.volumes.contains(name)) {
      errors.push_back(api::FieldError::NotFound(at.Child("name"), name));
    }
    RequireText(errors, at.Child("mountPath"), target);
    if (!mount_paths.insert(target).second) {
      errors.push_back(Invalid(at.Child("mountPath"), target, "must be unique"));
    }
    if (device_names.contains(name)) {
      errors.push_back(Invalid(at.Child("name"), name, "must not already exist in volumeDevices"));
    }
    if (device_paths.contains(target)) {
      errors.push_back(Invalid(at.Child("mountPath"), target,
                               "must not already exist as a path in volumeDevices"));
    }
    const std::string_view sub_path = mount["subPath"].str();
    const std::string_view expression = mount["subPathExpr"].str();
    if (!sub_path.empty()) CheckRelativePath(errors, path.Child("subPath"), sub_path);
    if (!expression.empty()) {
      if (!sub_path.empty()) {
        errors.push_back(Invalid(at.Child("subPathExpr"), expression,
                                 "subPathExpr and subPath are mutually exclusive"));
      }
      CheckRelativePath(errors, path.Child("subPathExpr"), expression);
    }
    CheckMountModes(errors, path, mount, privileged);
    CheckBindMountOptions(errors, at.Child("bindMountOptions"), mount, context);
  }
}

void CheckDevices(FieldErrors& errors, const FieldPath& path, Value container,
                  const ContainerContext& context) {
  const Value devices = container["volumeDevices"];
  if (devices.empty()) return;
  std::set<std::string_view> mount_names, mount_paths, names, targets;
  for (const Value mount : container["volumeMounts"].elements()) {
    mount_names.insert(mount["name"].str());
    mount_paths.insert(mount["mountPath"].str());
  }
  std::size_t index = 0;
  for (const Value device : devices.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++);
    const std::string_view name = device["name"].str();
    const std::string_view target = device["devicePath"].str();
    const auto add = [&](std::string_view field, std::string_view value, std::string_view why) {
      errors.push_back(Invalid(at.Child(field), value, why));
    };
    RequireText(errors, at.Child("name"), name);
    if (!name.empty() && !names.insert(name).second) add("name", name, "must be unique");
    const auto volume = context.volumes.find(name);
    if (volume == context.volumes.end()) {
      errors.push_back(api::FieldError::NotFound(at.Child("name"), name));
    } else if (!volume->second["persistentVolumeClaim"].has_value() &&
               !volume->second["ephemeral"].has_value()) {
      add("name", name,
          "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode");
    }
    RequireText(errors, at.Child("devicePath"), target);
    if (targets.contains(target)) add("devicePath", target, "must be unique");
    FieldErrors backsteps;
    CheckNoBacksteps(backsteps, at, target);
    if (backsteps.empty()) {
      targets.insert(target);
    } else {
      add("devicePath", target, "can not contain backsteps ('..')");
    }
    if (mount_names.contains(name)) add("name", name, "must not already exist in volumeMounts");
    if (mount_paths.contains(target)) {
      add("devicePath", target, "must not already exist as a path in volumeMounts");
    }
  }
}

void CheckResizePolicy(FieldErrors& errors, const FieldPath& path, Value policies,
                       const ContainerContext& context) {
  std::set<std::string_view> resources;
  std::size_t index = 0;
  for (const Value policy : policies.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++);
    const std::string_view resource = policy["resourceName"].str();
    const std::string_view restart = policy["restartPolicy"].str();
    if (!resources.insert(resource).second) errors.push_back(Duplicate(at, resource));
    RequireOneOf(errors, path, resource, {"cpu", "memory"});
    RequireOneOf(errors, path, restart, {"NotRequired", "RestartContainer"});
    if (context.never_restarts && restart != "NotRequired") {
      errors.push_back(
          Invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"));
    }
  }
}

// The restart policy and restart rules of a single container (gates ContainerRestartRules and
// RestartAllContainersOnContainerExits).
void CheckRestartRules(FieldErrors& errors, const FieldPath& path, Value container,
                       const FeatureGates& gates) {
  const Value policy = container["restartPolicy"];
  const Value rules = container["restartPolicyRules"];
  if (!policy.has_value()) {
    if (rules.empty()) return;
    errors.push_back(Required(path.Child("restartPolicy"),
                              "must specify restartPolicy when restart rules are used"));
  } else {
    CheckOneOf(errors, path.Child("restartPolicy"), policy.str(), {"Always", "Never", "OnFailure"});
  }
  const FieldPath list = path.Child("restartPolicyRules");
  if (rules.size() > kMaxRestartRules) {
    errors.push_back(api::FieldError::TooMany(list, rules.size(), kMaxRestartRules));
  }
  const bool may_restart_all = gates.Enabled(Gate::kRestartAllContainersOnContainerExits);
  std::size_t index = 0;
  for (const Value rule : rules.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = list.Index(index++);
    std::vector<std::string_view> actions = {"Restart"};
    if (may_restart_all) actions.push_back("RestartAllContainers");
    CheckOneOf(errors, at.Child("action"), rule["action"].str(), actions);
    const Value codes = rule["exitCodes"];
    if (!codes.has_value()) {
      errors.push_back(Required(at.Child("exitCodes"), "must be specified"));
      continue;
    }
    const FieldPath codes_path = at.Child("exitCodes");
    CheckOneOf(errors, codes_path.Child("operator"), codes["operator"].str(), {"In", "NotIn"});
    if (codes["values"].size() > kMaxExitCodes) {
      errors.push_back(api::FieldError::TooMany(codes_path.Child("values"), codes["values"].size(),
                                                kMaxExitCodes));
    }
  }
}

void CheckInitRestartRules(FieldErrors& errors, const FieldPath& path, Value container,
                           const FeatureGates& gates) {
  const Value policy = container["restartPolicy"];
  const bool always = policy.str() == "Always";
  if (!gates.Enabled(Gate::kContainerRestartRules)) {
    if (policy.has_value() && !always) {
      errors.push_back(NotSupported(path.Child("restartPolicy"), policy.str(), {"Always"}));
    }
  } else if (always && !gates.Enabled(Gate::kRestartAllContainersOnContainerExits)) {
    if (container["restartPolicyRules"].empty()) return;
    errors.push_back(Forbidden(
        path.Child("restartPolicyRules"),
        "restartPolicyRules are not allowed for init containers with restart policy Always"));
  } else {
    CheckRestartRules(errors, path, container, gates);
  }
}

// What all kinds of containers have in common.
void CheckContainer(FieldErrors& errors, const FieldPath& path, Value container,
                    const ContainerContext& context) {
  RequireDnsLabel(errors, path.Child("name"), container["name"].str());
  RequireText(errors, path.Child("image"), container["image"].str());
  RequireOneOf(errors, path.Child("terminationMessagePolicy"),
               container["terminationMessagePolicy"].str(), {"FallbackToLogsOnError", "File"});
  CheckPorts(errors, path.Child("ports"), container["ports"]);
  CheckEnvironment(errors, path.Child("env"), container["env"], context);
  CheckEnvironmentSources(errors, path.Child("envFrom"), container["envFrom"]);
  CheckMounts(errors, path.Child("volumeMounts"), container, context);
  CheckDevices(errors, path.Child("volumeDevices"), container, context);
  RequireOneOf(errors, path.Child("imagePullPolicy"), container["imagePullPolicy"].str(),
               {"Always", "IfNotPresent", "Never"});
  const Value resources = container["resources"];
  const FieldPath resources_path = path.Child("resources");
  CheckResourceRequirements(errors, resources_path, resources, ResourceScope::kContainer);
  CheckClaimReferences(errors, resources_path.Child("claims"), resources["claims"], context.claims);
  CheckResizePolicy(errors, path.Child("resizePolicy"), container["resizePolicy"], context);
  CheckContainerSecurityContext(errors, path.Child("securityContext"), container["securityContext"],
                                context.host_users);
  if (!context.host_users && !container["volumeDevices"].empty()) {
    errors.push_back(Forbidden(path.Child("volumeDevices"), "when `hostUsers` is false"));
  }
}

}  // namespace

void CheckContainers(FieldErrors& errors, const FieldPath& spec_path, Value spec,
                     const ContainerContext& context) {
  const FieldPath path = spec_path.Child("containers");
  if (spec["containers"].empty()) errors.push_back(Required(path));
  std::set<std::string_view> names;
  HostPorts ports;
  std::size_t index = 0;
  for (const Value container : spec["containers"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++);
    CheckContainer(errors, at, container, context);
    if (!names.insert(container["name"].str()).second) {
      errors.push_back(Duplicate(at.Child("name"), container["name"].str()));
    }
    if (container["lifecycle"].has_value()) {
      CheckLifecycle(errors, at.Child("lifecycle"), container["lifecycle"], context.handlers);
    }
    CheckProbes(errors, at, container);
    if (context.gates.Enabled(Gate::kContainerRestartRules)) {
      CheckRestartRules(errors, at, container, context.gates);
    } else if (container["restartPolicy"].has_value()) {
      errors.push_back(
          Forbidden(at.Child("restartPolicy"), "may not be set for non-init containers"));
    }
    ports.Take(errors, at.Child("ports"), container["ports"]);
  }
}

void CheckInitContainers(FieldErrors& errors, const FieldPath& spec_path, Value spec,
                         const ContainerContext& context) {
  const Value containers = spec["initContainers"];
  if (containers.empty()) return;
  const FieldPath path = spec_path.Child("initContainers");
  std::set<std::string_view> names;
  for (const Value each : spec["containers"].elements()) names.insert(each["name"].str());
  std::size_t index = 0;
  for (const Value container : containers.elements()) {
    if (WorkBudget::IsExceeded()) return;
    // Kubernetes reports conflicts of host ports as if the container were the only one.
    HostPorts ports;
    const FieldPath at = path.Index(index++);
    CheckContainer(errors, at, container, context);
    CheckInitRestartRules(errors, at, container, context.gates);
    const std::string_view name = container["name"].str();
    if (!name.empty() && !names.insert(name).second) {
      errors.push_back(Duplicate(at.Child("name"), name));
    }
    ports.Take(errors, path.Index(0).Child("ports"), container["ports"]);
    if (container["restartPolicy"].str() == "Always") {
      if (container["lifecycle"].has_value()) {
        CheckLifecycle(errors, at.Child("lifecycle"), container["lifecycle"], context.handlers);
      }
      CheckProbes(errors, at, container);
      continue;
    }
    for (const api::FieldName field :
         api::FieldNames{"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}) {
      if (!container[field].has_value()) continue;
      errors.push_back(
          Forbidden(at.Child(field.view()),
                    "may not be set for init containers without restartPolicy=Always"));
    }
    std::size_t place = 0;
    for (const Value policy : container["resizePolicy"].elements()) {
      const FieldPath policy_path = at.Child("resizePolicy").Index(place++);
      if (policy["restartPolicy"].str() != "RestartContainer") continue;
      errors.push_back(
          Invalid(policy_path.Child("restartPolicy"), policy["restartPolicy"].str(),
                  "must not be set to 'RestartContainer' for non-sidecar initContainers"));
    }
  }
}

// They are added to a running pod for debugging: nothing may depend on them.
void CheckEphemeralContainers(FieldErrors& errors, const FieldPath& spec_path, Value spec,
                              const ContainerContext& context) {
  const Value containers = spec["ephemeralContainers"];
  if (containers.empty()) return;
  const FieldPath list = spec_path.Child("ephemeralContainers");
  std::set<std::string_view> names, targets;
  for (const api::FieldName other : api::FieldNames{"containers", "initContainers"}) {
    for (const Value each : spec[other].elements()) targets.insert(each["name"].str());
  }
  names = targets;
  std::size_t index = 0;
  for (const Value container : containers.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath path = list.Index(index++);
    CheckContainer(errors, path, container, context);
    const std::string_view image = container["image"].str();
    if (Trim(image) != image) {
      errors.push_back(
          Invalid(path.Child("image"), image, "must not have leading or trailing whitespace"));
    }
    const std::string_view name = container["name"].str();
    if (!names.insert(name).second) errors.push_back(Duplicate(path.Child("name"), name));
    const std::string_view target = container["targetContainerName"].str();
    if (!target.empty() && !targets.contains(target)) {
      errors.push_back(api::FieldError::NotFound(path.Child("targetContainerName"), target));
    }
    for (const api::FieldName field : api::FieldNames{
             "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules",
             "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"}) {
      const Value value = container[field];
      if (value.is_string() ? value.str().empty() : value.empty()) continue;
      errors.push_back(
          Forbidden(path.Child(field.view()), "cannot be set for an Ephemeral Container"));
    }
    std::size_t mount_index = 0;
    for (const Value mount : container["volumeMounts"].elements()) {
      const FieldPath at = path.Child("volumeMounts").Index(mount_index++);
      for (const api::FieldName field : api::FieldNames{"subPath", "subPathExpr"}) {
        if (mount[field].str().empty()) continue;
        errors.push_back(
            Forbidden(at.Child(field.view()), "cannot be set for an Ephemeral Container"));
      }
    }
  }
}

}  // namespace drakkar::apiserver
