#include "apiserver/validation/pod.h"

#include <limits>
#include <map>
#include <set>

#include "api/meta/quantity.h"
#include "api/tree/draft.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/pod_resize.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

using VolumesByName = std::map<std::string_view, Value>;

const std::string kSpec = "spec";

std::string At(std::string_view path, std::size_t index) {
  return StrCat(path, "[", index, "]");
}

void CheckQuantities(Value list, const std::string& path, api::FieldErrors& causes) {
  for (const auto& [key, name, value] : list.members()) {
    auto quantity = api::Quantity::Parse(value.str());
    const std::string field = StrCat(path, "[", name, "]");
    if (!quantity.ok()) {
      causes.push_back(Invalid(field, value.str(), quantity.error().message));
    } else if (quantity->Sign() < 0) {
      causes.push_back(Invalid(field, value.str(), "must be greater than or equal to 0"));
    }
  }
}

void CheckResources(Value resources, const std::string& path, api::FieldErrors& causes) {
  CheckQuantities(resources["limits"], path + ".limits", causes);
  CheckQuantities(resources["requests"], path + ".requests", causes);
  for (const auto& [key, name, value] : resources["requests"].members()) {
    const Value limit = resources["limits"].Entry(name);
    if (!limit.has_value()) continue;
    auto requested = api::Quantity::Parse(value.str());
    auto limited = api::Quantity::Parse(limit.str());
    if (requested.ok() && limited.ok() && requested->Compare(*limited) > 0) {
      causes.push_back(
          Invalid(path + ".requests", value.str(),
                  StrCat("must be less than or equal to ", name, " limit of ", limit.str())));
    }
  }
}

// The mount options of a volume (gate VolumeBindMountOptions).
void CheckBindMountOptions(Value mount, const std::string& path, const VolumesByName& volumes,
                           api::FieldErrors& causes) {
  const Value options = mount["bindMountOptions"];
  std::set<std::string_view> seen;
  std::size_t index = 0;
  for (Value option : options.elements()) {
    const std::string at = At(path, index++);
    const std::string_view text = option.str();
    if (text != "nodev" && text != "noexec" && text != "nosuid") {
      causes.push_back(NotSupported(at, text, {"nodev", "noexec", "nosuid"}));
    }
    if (!seen.insert(text).second) causes.push_back(Duplicate(at, text));
  }
  const auto volume = volumes.find(mount["name"].str());
  if (!options.empty() && volume != volumes.end() && volume->second["image"].has_value()) {
    causes.push_back(Invalid(path, options, "bindMountOptions may not be used with image volumes"));
  }
}

// A pod in a user namespace cannot share other namespaces with the host, except the network if the
// gate UserNamespacesHostNetworkSupport is on.
void CheckHostUsers(Value spec, const std::string& path, const FeatureGates& gates,
                    api::FieldErrors& causes) {
  if (spec["hostUsers"].boolean(true)) return;
  constexpr std::string_view kWhy = "when `hostUsers` is false";
  if (spec["hostNetwork"].boolean() && !gates.Enabled(Gate::kUserNamespacesHostNetworkSupport)) {
    causes.push_back(Forbidden(path + ".hostNetwork", kWhy));
  }
  // The capitalization is that of Kubernetes.
  if (spec["hostPID"].boolean()) causes.push_back(Forbidden(path + ".HostPID", kWhy));
  if (spec["hostIPC"].boolean()) causes.push_back(Forbidden(path + ".HostIPC", kWhy));
}

// A container's claims must refer to claims of the pod. Each is used either as a whole or by
// request.
void CheckClaimReferences(Value claims, const std::string& path,
                          const std::set<std::string_view>& known, api::FieldErrors& causes) {
  std::map<std::string_view, std::set<std::string_view>> seen;
  std::size_t index = 0;
  for (Value claim : claims.elements()) {
    const std::string at = At(path, index++);
    const std::string_view name = claim["name"].str();
    const std::string_view request = claim["request"].str();
    if (name.empty()) {
      causes.push_back(Required(at));
      continue;
    }
    auto& requests = seen[name];
    const bool twice = requests.contains(request) || (requests.contains("") && !requests.empty()) ||
                       (request.empty() && !requests.empty());
    if (twice) {
      causes.push_back(
          Duplicate(at, request.empty() ? std::string(name) : StrCat(name, "/", request)));
    }
    requests.insert(request);
    if (!known.contains(name)) {
      std::string detail = "must be one of the names in pod.spec.resourceClaims";
      if (known.empty()) {
        detail += " which is empty";
      } else if (!WorkBudget::IsExceeded()) {
        detail += ": " + Join(known, ", ");
        WorkBudget::Charge(detail.size());
      }
      causes.push_back(NotFoundValue(at, name, detail));
    }
  }
}

constexpr std::size_t kMaxRestartRules = 20;
constexpr std::size_t kMaxExitCodes = 255;

// The restart policy and restart rules of a single container (gates ContainerRestartRules and
// RestartAllContainersOnContainerExits).
void CheckRestartRules(Value container, const std::string& path, bool init,
                       const FeatureGates& gates, api::FieldErrors& causes) {
  const Value policy = container["restartPolicy"];
  const std::string_view text = policy.str();
  if (policy.has_value()) {
    if (!gates.Enabled(Gate::kContainerRestartRules)) {
      if (init && text != "Always") {
        causes.push_back(NotSupported(path + ".restartPolicy", text, {"Always"}));
      }
    } else if (text != "Always" && text != "OnFailure" && text != "Never") {
      causes.push_back(
          NotSupported(path + ".restartPolicy", text, {"Always", "Never", "OnFailure"}));
    }
  }
  const Value rules = container["restartPolicyRules"];
  if (rules.empty()) return;
  if (!policy.has_value()) {
    causes.push_back(Required(path + ".restartPolicy",
                              "must specify restartPolicy when restart rules are used"));
  }
  const std::string list = path + ".restartPolicyRules";
  if (rules.size() > kMaxRestartRules)
    causes.push_back(TooMany(list, rules.size(), kMaxRestartRules));
  std::size_t index = 0;
  for (Value rule : rules.elements()) {
    const std::string at = At(list, index++);
    const std::string_view action = rule["action"].str();
    const bool may_restart_all = gates.Enabled(Gate::kRestartAllContainersOnContainerExits);
    if (action != "Restart" && !(may_restart_all && action == "RestartAllContainers")) {
      causes.push_back(may_restart_all ? NotSupported(at + ".action", action,
                                                      {"Restart", "RestartAllContainers"})
                                       : NotSupported(at + ".action", action, {"Restart"}));
    }
    const Value codes = rule["exitCodes"];
    if (!codes.has_value()) {
      causes.push_back(Required(at + ".exitCodes", "must be specified"));
      continue;
    }
    const std::string_view op = codes["operator"].str();
    if (op != "In" && op != "NotIn") {
      causes.push_back(NotSupported(at + ".exitCodes.operator", op, {"In", "NotIn"}));
    }
    if (codes["values"].size() > kMaxExitCodes) {
      causes.push_back(TooMany(at + ".exitCodes.values", codes["values"].size(), kMaxExitCodes));
    }
  }
}

void CheckContainer(Value container, const std::string& path,
                    const std::set<std::string_view>& claims, const VolumesByName& volumes,
                    api::FieldErrors& causes) {
  const std::string_view name = container["name"].str();
  if (name.empty()) {
    causes.push_back(Required(path + ".name"));
  } else if (api::Problems why = api::CheckDnsLabel(name); !why.empty()) {
    AddProblems(causes, path + ".name", name, why);
  }
  const std::string_view image = container["image"].str();
  if (image.empty()) {
    causes.push_back(Required(path + ".image"));
  } else if (Trim(image) != image) {
    causes.push_back(
        Invalid(path + ".image", image, "must not have leading or trailing whitespace"));
  }
  const std::string_view pull = container["imagePullPolicy"].str();
  if (!pull.empty() && pull != "Always" && pull != "IfNotPresent" && pull != "Never") {
    causes.push_back(
        NotSupported(path + ".imagePullPolicy", pull, {"Always", "IfNotPresent", "Never"}));
  }
  CheckResources(container["resources"], path + ".resources", causes);
  CheckClaimReferences(container["resources"]["claims"], path + ".resources.claims", claims,
                       causes);
  std::set<std::string_view> mounted;
  std::size_t index = 0;
  for (Value mount : container["volumeMounts"].elements()) {
    const std::string at = At(path + ".volumeMounts", index++);
    if (!volumes.contains(mount["name"].str())) {
      causes.push_back(NotFoundValue(at + ".name", mount["name"].str()));
    }
    const std::string_view target = mount["mountPath"].str();
    if (target.empty()) causes.push_back(Required(at + ".mountPath"));
    if (!mounted.insert(target).second) {
      causes.push_back(Invalid(at + ".mountPath", target, "must be unique"));
    }
    CheckBindMountOptions(mount, at + ".bindMountOptions", volumes, causes);
  }
  index = 0;
  for (Value variable : container["env"].elements()) {
    const std::string at = At(path + ".env", index++);
    if (variable["name"].str().empty()) causes.push_back(Required(at + ".name"));
    if (!variable["value"].str().empty() && variable["valueFrom"].has_value()) {
      causes.push_back(
          Invalid(at + ".valueFrom", "", "may not be specified when `value` is not empty"));
    }
  }
}

// The name of an entry: a DNS label that is unique in the list.
void AddName(Value entry, const std::string& path, std::set<std::string_view>& names,
             api::FieldErrors& causes) {
  const std::string_view name = entry["name"].str();
  if (name.empty()) {
    causes.push_back(Required(path + ".name"));
  } else if (api::Problems why = api::CheckDnsLabel(name); !why.empty()) {
    AddProblems(causes, path + ".name", name, why);
  } else if (!names.insert(name).second) {
    causes.push_back(Duplicate(path + ".name", name));
  }
}

std::set<std::string_view> CheckClaims(Value spec, const std::string& spec_path,
                                       api::FieldErrors& causes) {
  std::set<std::string_view> names;
  std::size_t index = 0;
  for (Value claim : spec["resourceClaims"].elements()) {
    const std::string path = At(spec_path + ".resourceClaims", index++);
    AddName(claim, path, names, causes);
    const Value direct = claim["resourceClaimName"];
    const Value from_template = claim["resourceClaimTemplateName"];
    if (direct.has_value() && from_template.has_value()) {
      causes.push_back(Invalid(path, claim,
                               "at most one of `resourceClaimName` or "
                               "`resourceClaimTemplateName` may be specified"));
    } else if (!direct.has_value() && !from_template.has_value()) {
      causes.push_back(Invalid(path, claim,
                               "must specify one of: `resourceClaimName`, "
                               "`resourceClaimTemplateName`"));
    }
    for (const auto& [value, field] : {std::pair(direct, "resourceClaimName"),
                                       std::pair(from_template, "resourceClaimTemplateName")}) {
      if (!value.has_value()) continue;
      AddProblems(causes, StrCat(path, ".", field), value.str(),
                  api::CheckDnsSubdomain(value.str()));
    }
  }
  return names;
}

VolumesByName CheckVolumes(Value spec, const std::string& spec_path, api::FieldErrors& causes) {
  std::set<std::string_view> names;
  VolumesByName volumes;
  std::size_t index = 0;
  for (Value volume : spec["volumes"].elements()) {
    const std::string path = At(spec_path + ".volumes", index++);
    AddName(volume, path, names, causes);
    volumes.emplace(volume["name"].str(), volume);
  }
  return volumes;
}

// Removes the parts of a pod's spec that an update may change; the rest must be equal.
api::TreePtr WithoutMutableParts(Value spec) {
  api::Draft draft(spec);
  draft.Remove("activeDeadlineSeconds");
  draft.Remove("terminationGracePeriodSeconds");
  draft.Remove("tolerations");
  draft.Remove("schedulingGates");
  for (const api::FieldName list : api::FieldNames{"containers", "initContainers"}) {
    api::Draft* containers = draft.Find(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (api::Draft& container : containers->MutableElements()) container.Remove("image");
  }
  return draft.Freeze();
}

bool ContainsValue(Value list, Value wanted) {
  constexpr std::size_t kStepsPerComparison = 16;
  WorkBudget::Charge(kStepsPerComparison * list.size());
  if (WorkBudget::IsExceeded()) return false;
  for (Value each : list.elements()) {
    if (api::Equal(each, wanted)) return true;
  }
  return false;
}

}  // namespace

constexpr std::string_view kDeadlinePath = "spec.activeDeadlineSeconds";
constexpr std::int64_t kMaxDeadline = std::numeric_limits<std::int32_t>::max();

api::FieldErrors ValidatePodSpec(Value spec, const std::string& at,
                                 const StrategyContext& context) {
  api::FieldErrors causes;
  const std::set<std::string_view> claims = CheckClaims(spec, at, causes);
  const VolumesByName volumes = CheckVolumes(spec, at, causes);
  if (spec["containers"].empty()) causes.push_back(Required(at + ".containers"));
  std::set<std::string_view> names;
  for (const api::FieldName list : api::FieldNames{"containers", "initContainers"}) {
    std::size_t index = 0;
    for (Value container : spec[list].elements()) {
      if (WorkBudget::IsExceeded()) return causes;
      const std::string path = At(StrCat(at, ".", list.view()), index++);
      CheckContainer(container, path, claims, volumes, causes);
      CheckRestartRules(container, path, list == api::FieldName("initContainers"), context.gates,
                        causes);
      const std::string_view name = container["name"].str();
      if (!name.empty() && !names.insert(name).second) {
        causes.push_back(Duplicate(path + ".name", name));
      }
    }
  }
  CheckHostUsers(spec, at, context.gates, causes);
  const std::string_view restart = spec["restartPolicy"].str();
  if (restart != "Always" && restart != "OnFailure" && restart != "Never") {
    causes.push_back(
        NotSupported(at + ".restartPolicy", restart, {"Always", "OnFailure", "Never"}));
  }
  const Value deadline = spec["activeDeadlineSeconds"];
  if (deadline.has_value() && (deadline.integer() < 1 || deadline.integer() > kMaxDeadline)) {
    causes.push_back(Invalid(at + ".activeDeadlineSeconds", deadline.integer(),
                             "must be between 1 and 2147483647, inclusive"));
  }
  const Value grace = spec["terminationGracePeriodSeconds"];
  if (grace.integer() < 0) {
    causes.push_back(Invalid(at + ".terminationGracePeriodSeconds", grace.integer(),
                             "must be greater than or equal to 0"));
  }
  return causes;
}

api::FieldErrors ValidatePod(Value pod, const StrategyContext& context) {
  api::FieldErrors causes = ValidatePodSpec(pod["spec"], kSpec, context);
  if (!pod["spec"]["ephemeralContainers"].empty()) {
    causes.push_back(Forbidden("spec.ephemeralContainers", "cannot be set on create"));
  }
  return causes;
}

namespace {

// Ephemeral containers are added to a running pod for debugging: nothing may depend on them.
void CheckEphemeralContainers(Value spec, api::FieldErrors& causes) {
  api::FieldErrors ignored;
  const std::set<std::string_view> claims = CheckClaims(spec, kSpec, ignored);
  const VolumesByName volumes = CheckVolumes(spec, kSpec, ignored);
  std::set<std::string_view> names, targets;
  for (const api::FieldName list : api::FieldNames{"initContainers", "containers"}) {
    for (Value container : spec[list].elements()) {
      names.insert(container["name"].str());
      targets.insert(container["name"].str());
    }
  }
  std::size_t index = 0;
  for (Value container : spec["ephemeralContainers"].elements()) {
    const std::string path = At("spec.ephemeralContainers", index++);
    CheckContainer(container, path, claims, volumes, causes);
    const std::string_view name = container["name"].str();
    if (!name.empty() && !names.insert(name).second)
      causes.push_back(Duplicate(path + ".name", name));
    const std::string_view target = container["targetContainerName"].str();
    if (!target.empty() && !targets.contains(target)) {
      causes.push_back(NotFoundValue(path + ".targetContainerName", target));
    }
    for (const api::FieldName field :
         api::FieldNames{"ports", "resources", "livenessProbe", "readinessProbe", "startupProbe",
                         "lifecycle", "resizePolicy", "restartPolicy", "restartPolicyRules"}) {
      const Value value = container[field];
      if (value.is_string() ? value.str().empty() : value.empty()) continue;
      causes.push_back(
          Forbidden(StrCat(path, ".", field), "cannot be set for an Ephemeral Container"));
    }
    std::size_t mount_index = 0;
    for (Value mount : container["volumeMounts"].elements()) {
      const std::string at = At(path + ".volumeMounts", mount_index++);
      for (const api::FieldName field : api::FieldNames{"subPath", "subPathExpr"}) {
        if (mount[field].str().empty()) continue;
        causes.push_back(
            Forbidden(StrCat(at, ".", field), "cannot be set for an Ephemeral Container"));
      }
    }
  }
}

// A deadline may be shortened, but neither removed nor extended.
void CheckDeadlineUpdate(Value now, Value before, api::FieldErrors& causes) {
  const std::string path(kDeadlinePath);
  if (!now.has_value()) {
    if (before.has_value()) {
      causes.push_back(
          Invalid(path, nullptr, "must not update from a positive integer to nil value"));
    }
    return;
  }
  if (now.integer() < 0 || now.integer() > kMaxDeadline) {
    causes.push_back(Invalid(path, now.integer(), "must be between 0 and 2147483647, inclusive"));
  } else if (before.has_value() && before.integer() < now.integer()) {
    causes.push_back(Invalid(path, now.integer(), "must be less than or equal to previous value"));
  }
}

// Additions only: existing ones are neither changed nor removed.
void CheckEphemeralContainersUpdate(Value pod, Value before, api::FieldErrors& causes) {
  CheckEphemeralContainers(pod["spec"], causes);
  std::map<std::string_view, Value> by_name;
  for (Value each : pod["spec"]["ephemeralContainers"].elements()) {
    by_name[each["name"].str()] = each;
  }
  for (Value old : before["spec"]["ephemeralContainers"].elements()) {
    const auto found = by_name.find(old["name"].str());
    const Value now = found == by_name.end() ? Value() : found->second;
    if (now.exists() && api::Equal(now, old)) continue;
    causes.push_back(Forbidden("spec.ephemeralContainers",
                               StrCat("existing ephemeral containers ", Quote(old["name"].str()),
                                      " may not be ", now.exists() ? "changed" : "removed", "\n")));
  }
}

}  // namespace

api::FieldErrors ValidatePodUpdate(Value pod, Value before, std::string_view subresource,
                                   const StrategyContext& context) {
  api::FieldErrors causes;
  if (subresource == "ephemeralcontainers") {
    CheckEphemeralContainersUpdate(pod, before, causes);
    return causes;
  }
  if (subresource == "resize") return ValidatePodResize(pod, before, context.gates);
  if (!api::Equal(WithoutMutableParts(pod["spec"])->root(),
                  WithoutMutableParts(before["spec"])->root())) {
    causes.push_back(
        Forbidden("spec",
                  "pod updates may not change fields other than `spec.containers[*].image`,"
                  "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
                  "`spec.tolerations` (only additions to existing tolerations),"
                  "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
                  "previously negative)"));
  }
  CheckDeadlineUpdate(pod["spec"]["activeDeadlineSeconds"], before["spec"]["activeDeadlineSeconds"],
                      causes);
  for (Value toleration : before["spec"]["tolerations"].elements()) {
    if (!ContainsValue(pod["spec"]["tolerations"], toleration)) {
      causes.push_back(Forbidden("spec.tolerations",
                                 "existing toleration can not be modified except its "
                                 "tolerationSeconds"));
      break;
    }
  }
  for (Value gate : pod["spec"]["schedulingGates"].elements()) {
    if (!ContainsValue(before["spec"]["schedulingGates"], gate)) {
      causes.push_back(Forbidden("spec.schedulingGates",
                                 StrCat("only deletion is allowed, but found new scheduling gate '",
                                        gate["name"].str(), "'")));
    }
  }
  return causes;
}

api::FieldErrors ValidatePodStatusUpdate(Value pod, Value, const StrategyContext&) {
  api::FieldErrors causes;
  std::set<std::string_view> known;
  for (Value claim : pod["spec"]["resourceClaims"].elements()) known.insert(claim["name"].str());
  std::set<std::string_view> seen;
  std::size_t index = 0;
  for (Value status : pod["status"]["resourceClaimStatuses"].elements()) {
    const std::string path = At("status.resourceClaimStatuses", index++);
    const std::string_view name = status["name"].str();
    if (!seen.insert(name).second) causes.push_back(Duplicate(path + ".name", name));
    if (!known.contains(name)) {
      causes.push_back(Invalid(path + ".name", name,
                               "must match the name of an entry in `spec.resourceClaims`"));
    }
    const Value claim = status["resourceClaimName"];
    if (claim.has_value()) {
      AddProblems(causes, path + ".resourceClaimName", claim.str(),
                  api::CheckDnsSubdomain(claim.str()));
    }
  }
  return causes;
}

}  // namespace drakkar::apiserver
