#include "apiserver/validation/pod.h"

#include <limits>
#include <map>
#include <set>

#include "api/meta/annotations.h"
#include "api/tree/draft.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/container.h"
#include "apiserver/validation/container_resources.h"
#include "apiserver/validation/metadata.h"
#include "apiserver/validation/pod_resize.h"
#include "apiserver/validation/pod_scheduling.h"
#include "apiserver/validation/pod_status.h"
#include "apiserver/validation/security_context.h"
#include "apiserver/validation/value_rules.h"
#include "apiserver/validation/volume_source.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::FieldPath;
using api::Value;

constexpr std::string_view kDeadlinePath = "spec.activeDeadlineSeconds";
constexpr std::int64_t kMaxDeadline = std::numeric_limits<std::int32_t>::max();

bool IsMirror(Value metadata) {
  return metadata["annotations"].Entry(api::kMirrorAnnotation).exists();
}

// A pod in a user namespace cannot share other namespaces with the host, except the network if the
// gate UserNamespacesHostNetworkSupport is on.
void CheckHostUsers(FieldErrors& errors, const FieldPath& path, Value spec,
                    const FeatureGates& gates) {
  if (spec["hostUsers"].boolean(true)) return;
  constexpr std::string_view kWhy = "when `hostUsers` is false";
  if (spec["hostNetwork"].boolean() && !gates.Enabled(Gate::kUserNamespacesHostNetworkSupport)) {
    errors.push_back(Forbidden(path.Child("hostNetwork"), kWhy));
  }
  // The capitalization is that of Kubernetes.
  if (spec["hostPID"].boolean()) errors.push_back(Forbidden(path.Child("HostPID"), kWhy));
  if (spec["hostIPC"].boolean()) errors.push_back(Forbidden(path.Child("HostIPC"), kWhy));
}

void CheckClaims(FieldErrors& errors, const FieldPath& path, Value claims) {
  std::set<std::string_view> names;
  std::size_t index = 0;
  for (const Value claim : claims.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++);
    const std::string_view name = claim["name"].str();
    if (name.empty()) {
      errors.push_back(Required(at.Child("name")));
    } else if (!names.insert(name).second) {
      errors.push_back(Duplicate(at.Child("name"), name));
    } else {
      CheckDnsLabel(errors, at.Child("name"), name);
    }
    const Value direct = claim["resourceClaimName"];
    const Value from_template = claim["resourceClaimTemplateName"];
    if (direct.has_value() && from_template.has_value()) {
      errors.push_back(Invalid(at, claim,
                               "at most one of `resourceClaimName` or "
                               "`resourceClaimTemplateName` may be specified"));
    } else if (!direct.has_value() && !from_template.has_value()) {
      errors.push_back(Invalid(at, claim,
                               "must specify one of: `resourceClaimName`, "
                               "`resourceClaimTemplateName`"));
    }
    for (const api::FieldName field :
         api::FieldNames{"resourceClaimName", "resourceClaimTemplateName"}) {
      if (claim[field].has_value()) {
        CheckDnsSubdomain(errors, at.Child(field.view()), claim[field].str());
      }
    }
  }
}

// Returns the valid volumes. `pod` is the pod's name, if it has one.
std::map<std::string_view, Value> CheckVolumes(FieldErrors& errors, const FieldPath& path,
                                               Value list, std::string_view pod) {
  std::map<std::string_view, Value> valid;
  std::set<std::string> made;  // claims that the pod's ephemeral volumes create
  if (!pod.empty()) {
    for (const Value volume : list.elements()) {
      if (volume["ephemeral"].has_value()) made.insert(StrCat(pod, "-", volume["name"].str()));
    }
  }
  std::size_t index = 0;
  for (const Value volume : list.elements()) {
    if (WorkBudget::IsExceeded()) break;
    const FieldPath at = path.Index(index++);
    const std::string_view name = volume["name"].str();
    const std::size_t before = errors.size();
    CheckVolumeSource(errors, at, volume, pod);
    RequireDnsLabel(errors, at.Child("name"), name);
    if (valid.contains(name)) errors.push_back(Duplicate(at.Child("name"), name));
    if (errors.size() == before) valid.emplace(name, volume);
    const std::string_view claim = volume["persistentVolumeClaim"]["claimName"].str();
    if (!made.empty() && made.contains(std::string(claim))) {
      errors.push_back(Invalid(at.Child("persistentVolumeClaim").Child("claimName"), claim,
                               "must not reference a PVC that gets created for an ephemeral "
                               "volume"));
    }
  }
  return valid;
}

// The scheduler knows which ports of a node are taken from the host ports.
void CheckHostNetworkPorts(FieldErrors& errors, const FieldPath& path, Value spec, bool is_pod) {
  if (!spec["hostNetwork"].boolean()) return;
  std::size_t place = 0;
  for (const Value container : spec["containers"].elements()) {
    const FieldPath ports = path.Child("containers").Index(place++).Child("ports");
    std::size_t index = 0;
    for (const Value port : container["ports"].elements()) {
      if (WorkBudget::IsExceeded()) return;
      const FieldPath at = ports.Index(index++).Child("hostPort");
      const std::int64_t host_port = port["hostPort"].integer();
      // Pods get the default, templates may do without.
      if (!is_pod && host_port == 0) continue;
      if (host_port == port["containerPort"].integer()) continue;
      errors.push_back(
          Invalid(at, host_port, "must match `containerPort` when `hostNetwork` is true"));
    }
  }
}

void CheckDns(FieldErrors& errors, const FieldPath& path, Value spec) {
  constexpr std::size_t kMaxNameservers = 3;
  constexpr std::size_t kMaxSearches = 32;
  constexpr std::size_t kMaxSearchBytes = 2'048;
  const std::string_view policy = spec["dnsPolicy"].str();
  RequireOneOf(errors, path.Child("dnsPolicy"), policy,
               {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"});
  const Value config = spec["dnsConfig"];
  const FieldPath at = path.Child("dnsConfig");
  const Value servers = config["nameservers"];
  if (policy == "None" && servers.empty()) {
    errors.push_back(
        config.has_value()
            ? Required(at.Child("nameservers"),
                       "must provide at least one DNS nameserver when `dnsPolicy` is None")
            : Required(at, "must provide `dnsConfig` when `dnsPolicy` is None"));
    return;
  }
  if (servers.size() > kMaxNameservers) {
    errors.push_back(Invalid(at.Child("nameservers"), servers,
                             StrCat("must not have more than ", kMaxNameservers, " nameservers")));
  }
  std::size_t index = 0;
  for (const Value server : servers.elements()) {
    if (WorkBudget::IsExceeded()) return;
    CheckIpAddress(errors, at.Child("nameservers").Index(index++), server.str());
  }
  const Value searches = config["searches"];
  const FieldPath searches_path = at.Child("searches");
  if (searches.size() > kMaxSearches) {
    errors.push_back(Invalid(searches_path, searches,
                             StrCat("must not have more than ", kMaxSearches, " search paths")));
  }
  std::size_t bytes = searches.empty() ? 0 : searches.size() - 1;
  index = 0;
  for (const Value each : searches.elements()) {
    if (WorkBudget::IsExceeded()) return;
    std::string_view domain = each.str();
    bytes += domain.size();
    const FieldPath search_path = searches_path.Index(index++);
    if (domain == ".") continue;
    if (domain.ends_with('.')) domain.remove_suffix(1);
    CheckSearchDomain(errors, search_path, domain);
  }
  if (bytes > kMaxSearchBytes) {
    errors.push_back(Invalid(searches_path, searches,
                             StrCat("must not have more than ", kMaxSearchBytes,
                                    " characters (including spaces) in the search list")));
  }
  index = 0;
  for (const Value option : config["options"].elements()) {
    const FieldPath option_path = at.Child("options").Index(index++);
    if (option["name"].str().empty()) {
      errors.push_back(Required(option_path, "must not be empty"));
    }
  }
}

void CheckHostNames(FieldErrors& errors, const FieldPath& path, Value spec) {
  constexpr std::size_t kMaxHostnameBytes = 64;
  for (const api::FieldName field : api::FieldNames{"hostname", "subdomain"}) {
    const std::string_view name = spec[field].str();
    if (!name.empty()) CheckDnsLabel(errors, path.Child(field.view()), name);
  }
  const Value name = spec["hostnameOverride"];
  if (name.has_value()) {
    const FieldPath at = path.Child("hostnameOverride");
    if (spec["setHostnameAsFQDN"].boolean()) {
      errors.push_back(Forbidden(at, "may not be specified when setHostnameAsFQDN is true"));
    }
    if (spec["hostNetwork"].boolean()) {
      errors.push_back(Forbidden(at, "may not be specified when hostNetwork is true"));
    }
    if (name.str().size() > kMaxHostnameBytes) {
      errors.push_back(api::FieldError::TooLong(at, kMaxHostnameBytes));
    }
    CheckDnsSubdomain(errors, at, name.str());
  }
  std::size_t index = 0;
  for (const Value alias : spec["hostAliases"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Child("hostAliases").Index(index++);
    CheckIpAddress(errors, at.Child("ip"), alias["ip"].str());
    std::size_t place = 0;
    for (const Value host : alias["hostnames"].elements()) {
      CheckDnsSubdomain(errors, at.Child("hostnames").Index(place++), host.str());
    }
  }
}

// Names of other objects.
void CheckReferences(FieldErrors& errors, const FieldPath& path, Value spec) {
  for (const api::FieldName field :
       api::FieldNames{"serviceAccountName", "nodeName", "priorityClassName"}) {
    const std::string_view name = spec[field].str();
    if (!name.empty()) CheckDnsSubdomain(errors, path.Child(field.view()), name);
  }
  const std::string_view account = spec["serviceAccountName"].str();
  if (const std::string_view old_name = spec["serviceAccount"].str(); old_name != account) {
    errors.push_back(Invalid(path.Child("deprecatedServiceAccount"), old_name,
                             StrCat("must be the same as serviceAccountName: ", Quote(account))));
  }
  const Value runtime = spec["runtimeClassName"];
  if (runtime.has_value()) CheckDnsSubdomain(errors, path.Child("runtimeClassName"), runtime.str());
  const Value group = spec["schedulingGroup"];
  if (!group.has_value()) return;
  const FieldPath at = path.Child("schedulingGroup").Child("podGroupName");
  if (!group["podGroupName"].has_value()) {
    errors.push_back(Invalid(at, nullptr, "must specify one of: `podGroupName`"));
  } else {
    CheckDnsSubdomain(errors, at, group["podGroupName"].str());
  }
}

void CheckEvictionResponders(FieldErrors& errors, const FieldPath& path, Value spec) {
  constexpr std::size_t kMaxResponders = 10;
  constexpr std::int64_t kMaxPriority = 100'000;
  const Value responders = spec["evictionResponders"];
  if (responders.empty()) return;
  const FieldPath list = path.Child("evictionResponders");
  if (spec["schedulingGroup"].has_value()) {
    errors.push_back(
        Forbidden(path.Child("schedulingGroup"), "may not be set when evictionResponders is set"));
  }
  if (responders.size() > kMaxResponders) {
    errors.push_back(api::FieldError::TooMany(list, responders.size(), kMaxResponders));
    return;
  }
  std::set<std::string_view> names;
  std::size_t index = 0;
  for (const Value responder : responders.elements()) {
    const FieldPath at = list.Index(index++);
    const std::string_view name = responder["name"].str();
    if (!names.insert(name).second) errors.push_back(Duplicate(at, responder));
    if (name.empty()) {
      errors.push_back(Required(at.Child("name")));
    } else {
      AddProblems(errors, at.Child("name"), name, api::CheckLabelKey(name));
    }
    const FieldPath priority_path = at.Child("priority");
    const Value priority = responder["priority"];
    if (!priority.has_value()) {
      errors.push_back(Required(priority_path));
    } else if (priority.integer() < 0) {
      errors.push_back(
          Invalid(priority_path, priority.integer(), "must be greater than or equal to 0"));
    } else if (priority.integer() > kMaxPriority) {
      errors.push_back(Invalid(priority_path, priority.integer(),
                               StrCat("must be less than or equal to ", kMaxPriority)));
    }
  }
}

void CheckGates(FieldErrors& errors, const FieldPath& path, Value spec) {
  std::size_t index = 0;
  for (const Value gate : spec["readinessGates"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    const std::string_view type = gate["conditionType"].str();
    AddProblems(errors, path.Child("readinessGates").Index(index++).Child("conditionType"), type,
                api::CheckLabelKey(type));
  }
  std::set<std::string_view> seen;
  index = 0;
  for (const Value gate : spec["schedulingGates"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Child("schedulingGates").Index(index++);
    const std::string_view name = gate["name"].str();
    AddProblems(errors, at, name, api::CheckLabelKey(name));
    if (!seen.insert(name).second) errors.push_back(Duplicate(at, name));
  }
}

// `metadata` is that of the pod; it does not exist for a template.
void CheckPodSpec(FieldErrors& errors, const FieldPath& path, Value spec, Value metadata,
                  const StrategyContext& context) {
  const bool is_pod = metadata.exists();
  ContainerContext containers{.gates = context.gates,
                              .claims = {},
                              .volumes = {},
                              .declared = spec["volumes"],
                              .handlers = {}};
  containers.handlers.grace_seconds = spec["terminationGracePeriodSeconds"].optional_integer();
  containers.handlers.os = spec["os"]["name"].str();
  containers.host_users = spec["hostUsers"].boolean(true);
  const std::string_view restart = spec["restartPolicy"].str();
  containers.never_restarts = restart == "Never";
  for (const Value claim : spec["resourceClaims"].elements()) {
    if (!claim["name"].str().empty()) containers.claims.insert(claim["name"].str());
  }
  containers.volumes =
      CheckVolumes(errors, path.Child("volumes"), spec["volumes"], metadata["name"].str());
  const FieldPath claims_path = path.Child("resourceClaims");
  if (is_pod && IsMirror(metadata) && !spec["resourceClaims"].empty()) {
    errors.push_back(Forbidden(FieldPath(), "static pods do not support resource claims"));
  } else {
    CheckClaims(errors, claims_path, spec["resourceClaims"]);
  }
  CheckContainers(errors, path, spec, containers);
  CheckInitContainers(errors, path, spec, containers);
  CheckEphemeralContainers(errors, path, spec, containers);
  if (context.gates.Enabled(Gate::kPodLevelResources)) CheckPodLevelResources(errors, path, spec);
  CheckHostNetworkPorts(errors, path, spec, is_pod);
  RequireOneOf(errors, path.Child("restartPolicy"), restart, {"Always", "OnFailure", "Never"});
  CheckDns(errors, path, spec);
  if (!spec["nodeSelector"].empty()) {
    Findings findings;
    CheckLabels(findings, path.Child("nodeSelector"), spec["nodeSelector"]);
    errors.Append(PlainErrors(findings));
  }
  CheckPodSecurityContext(errors, path, spec);
  if (spec["shareProcessNamespace"].boolean() && spec["hostPID"].boolean()) {
    errors.push_back(Invalid(path.Child("shareProcessNamespace"), true,
                             "ShareProcessNamespace and HostPID cannot both be enabled"));
  }
  if (spec["affinity"].has_value()) CheckAffinity(errors, path.Child("affinity"), spec["affinity"]);
  CheckGates(errors, path, spec);
  CheckSpreadConstraints(errors, path.Child("topologySpreadConstraints"),
                         spec["topologySpreadConstraints"]);
  CheckHostUsers(errors, path, spec, context.gates);
  CheckReferences(errors, path, spec);
  const Value deadline = spec["activeDeadlineSeconds"];
  if (deadline.has_value()) {
    CheckInRange(errors, path.Child("activeDeadlineSeconds"), deadline.integer(), 1, kMaxDeadline);
  }
  CheckHostNames(errors, path, spec);
  CheckTolerations(errors, path.Child("tolerations"), spec["tolerations"], context.gates);
  if (const Value preemption = spec["preemptionPolicy"]; preemption.has_value()) {
    RequireOneOf(errors, path.Child("preemptionPolicy"), preemption.str(),
                 {"PreemptLowerPriority", "Never"});
  }
  if (!spec["overhead"].empty()) CheckOverhead(errors, path.Child("overhead"), spec["overhead"]);
  CheckOperatingSystem(errors, path, spec);
  CheckEvictionResponders(errors, path, spec);
}

void CheckPodAnnotations(FieldErrors& errors, Value pod) {
  constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";
  const FieldPath path = FieldPath("metadata").Child("annotations");
  const Value annotations = pod["metadata"]["annotations"];
  if (annotations.empty()) return;
  if (IsMirror(pod["metadata"]) && pod["spec"]["nodeName"].str().empty()) {
    errors.push_back(Invalid(path.Key(api::kMirrorAnnotation),
                             annotations.Entry(api::kMirrorAnnotation).str(),
                             "must set spec.nodeName if mirror pod annotation is set"));
  }
  const Value cost = annotations.Entry(kDeletionCost);
  if (cost.exists()) {
    // Without a plus sign or leading zeros.
    const std::string_view text = cost.str();
    const std::optional<std::int64_t> number = ParseInt64(text);
    if (!number || *number < std::numeric_limits<std::int32_t>::min() ||
        *number > std::numeric_limits<std::int32_t>::max() || text != StrCat(*number)) {
      errors.push_back(Invalid(path.Key(kDeletionCost), text, "must be a 32bit integer"));
    }
  }
  CheckProfileAnnotations(errors, pod["metadata"], pod["spec"]);
}

// The rules for pods, but not for templates.
void CheckWholePod(FieldErrors& errors, Value pod, const StrategyContext& context) {
  const Value spec = pod["spec"];
  const FieldPath path("spec");
  CheckPodAnnotations(errors, pod);
  CheckPodSpec(errors, path, spec, pod["metadata"], context);
  if (spec["serviceAccountName"].str().empty()) {
    std::size_t index = 0;
    for (const Value volume : spec["volumes"].elements()) {
      const FieldPath sources = path.Child("volumes").Index(index++).Child("projected");
      std::size_t place = 0;
      for (const Value source : volume["projected"]["sources"].elements()) {
        const FieldPath at = sources.Child("sources").Index(place++);
        if (!source["serviceAccountToken"].has_value()) continue;
        errors.push_back(Forbidden(at.Child("serviceAccountToken"),
                                   "must not be specified when serviceAccountName is not set"));
      }
    }
  }
  CheckNotNegative(errors, path.Child("terminationGracePeriodSeconds"),
                   spec["terminationGracePeriodSeconds"].integer());
  for (const api::FieldName list : api::FieldNames{"containers", "initContainers"}) {
    std::size_t index = 0;
    for (const Value container : spec[list].elements()) {
      const FieldPath at = path.Child(list.view()).Index(index++).Child("image");
      const std::string_view image = container["image"].str();
      if (Trim(image) == image) continue;
      errors.push_back(Invalid(at, image, "must not have leading or trailing whitespace"));
    }
  }
}

// The errors that `known` does not have.
FieldErrors NewErrors(FieldErrors errors, const FieldErrors& known) {
  std::set<std::string> texts;
  for (const api::FieldError& error : known) texts.insert(error.ToString());
  FieldErrors fresh;
  for (api::FieldError& error : errors) {
    if (!texts.contains(error.ToString())) fresh.Keep(std::move(error));
  }
  if (errors.dropped() > known.dropped()) fresh.Drop(errors.dropped() - known.dropped());
  return fresh;
}

// Removes the parts of a pod's spec that have rules of their own for changes.
api::TreePtr FixedSpec(Value spec, bool was_gated) {
  api::Draft draft(spec);
  draft.Remove("activeDeadlineSeconds");
  draft.Remove("tolerations");
  draft.Remove("schedulingGates");
  // A negative period, which older servers accepted, may be changed to 1.
  if (spec["terminationGracePeriodSeconds"].integer() < 0) {
    draft["terminationGracePeriodSeconds"] = 1;
  }
  if (was_gated) {
    draft.Remove("nodeSelector");
    api::Draft* affinity = draft.Find("affinity");
    if (affinity != nullptr && affinity->is_object()) {
      affinity->Remove("nodeAffinity");
      if (affinity->size() == 0) draft.Remove("affinity");
    }
  }
  for (const api::FieldName list : api::FieldNames{"containers", "initContainers"}) {
    api::Draft* containers = draft.Find(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (api::Draft& container : containers->MutableElements()) container.Remove("image");
  }
  return draft.Freeze();
}

// A deadline may be shortened, but neither removed nor extended.
void CheckDeadlineUpdate(FieldErrors& errors, Value now, Value before) {
  const FieldPath path(kDeadlinePath);
  if (!now.has_value()) {
    if (before.has_value()) {
      errors.push_back(
          Invalid(path, nullptr, "must not update from a positive integer to nil value"));
    }
    return;
  }
  if (now.integer() < 0 || now.integer() > kMaxDeadline) {
    CheckInRange(errors, path, now.integer(), 0, kMaxDeadline);
  } else if (before.has_value() && before.integer() < now.integer()) {
    errors.push_back(Invalid(path, now.integer(), "must be less than or equal to previous value"));
  }
}

std::string WithoutSeconds(Value toleration) {
  std::string text;
  for (const api::FieldName field : api::FieldNames{"key", "operator", "value", "effect"}) {
    text += StrCat(toleration[field].str(), "\n");
  }
  return text;
}

// Tolerations may be added, and how long they last may change.
void CheckTolerationsUpdate(FieldErrors& errors, Value now, Value before) {
  std::set<std::string> kept;
  for (const Value toleration : now.elements()) kept.insert(WithoutSeconds(toleration));
  for (const Value toleration : before.elements()) {
    if (kept.contains(WithoutSeconds(toleration))) continue;
    errors.push_back(
        Forbidden("spec.tolerations",
                  "existing toleration can not be modified except its tolerationSeconds"));
    return;
  }
}

void CheckGatesUpdate(FieldErrors& errors, Value now, Value before) {
  std::set<std::string_view> old;
  for (const Value gate : before.elements()) old.insert(gate["name"].str());
  std::size_t index = 0;
  for (const Value gate : now.elements()) {
    const FieldPath at = FieldPath("spec.schedulingGates").Index(index++).Child("name");
    const std::string_view name = gate["name"].str();
    if (old.contains(name)) continue;
    errors.push_back(Forbidden(
        at, StrCat("only deletion is allowed, but found new scheduling gate '", name, "'")));
  }
}

// Mirror pods stand for pods that the API server does not manage: that cannot change.
void CheckAnnotationsUpdate(FieldErrors& errors, Value pod, Value before) {
  const FieldPath at = FieldPath("metadata").Child("annotations").Key(api::kMirrorAnnotation);
  const Value now = pod["metadata"]["annotations"].Entry(api::kMirrorAnnotation);
  const Value old = before["metadata"]["annotations"].Entry(api::kMirrorAnnotation);
  if (old.exists() && (!now.exists() || now.str() != old.str())) {
    errors.push_back(Forbidden(at, "may not remove or update mirror pod annotation"));
  } else if (!old.exists() && now.exists()) {
    errors.push_back(Forbidden(at, "may not add mirror pod annotation"));
  }
  constexpr std::string_view kAppArmor = "container.apparmor.security.beta.kubernetes.io/";
  const Value annotations = pod["metadata"]["annotations"];
  const Value former = before["metadata"]["annotations"];
  for (const auto& [key, name, value] : former.members()) {
    if (!name.starts_with(kAppArmor)) continue;
    const Value kept = annotations.Entry(name);
    if (kept.exists() && kept.str() == value.str()) continue;
    errors.push_back(Forbidden(FieldPath("metadata").Child("annotations").Key(name),
                               "may not remove or update AppArmor annotations"));
  }
  for (const auto& [key, name, value] : annotations.members()) {
    if (!name.starts_with(kAppArmor) || former.Entry(name).exists()) continue;
    errors.push_back(Forbidden(FieldPath("metadata").Child("annotations").Key(name),
                               "may not add AppArmor annotations"));
  }
}

// Additions only: existing ones are neither changed nor removed.
void CheckEphemeralContainersUpdate(FieldErrors& errors, Value pod, Value before) {
  std::map<std::string_view, Value> by_name;
  for (const Value each : pod["spec"]["ephemeralContainers"].elements()) {
    by_name[each["name"].str()] = each;
  }
  for (const Value old : before["spec"]["ephemeralContainers"].elements()) {
    const auto found = by_name.find(old["name"].str());
    const Value now = found == by_name.end() ? Value() : found->second;
    if (now.exists() && api::Equal(now, old)) continue;
    errors.push_back(Forbidden("spec.ephemeralContainers",
                               StrCat("existing ephemeral containers ", Quote(old["name"].str()),
                                      " may not be ", now.exists() ? "changed" : "removed", "\n")));
  }
}

// False if there is no point in comparing further.
bool CheckSameContainers(FieldErrors& errors, Value now, Value before) {
  for (const api::FieldName list : api::FieldNames{"containers", "initContainers"}) {
    if (now[list].size() == before[list].size()) continue;
    errors.push_back(
        Forbidden(StrCat("spec.", list.view()), "pod updates may not add or remove containers"));
    return false;
  }
  return true;
}

FieldErrors CheckSpecUpdate(Value pod, Value before) {
  FieldErrors errors;
  const Value spec = pod["spec"];
  const Value old = before["spec"];
  if (!CheckSameContainers(errors, spec, old)) return errors;
  CheckDeadlineUpdate(errors, spec["activeDeadlineSeconds"], old["activeDeadlineSeconds"]);
  CheckTolerationsUpdate(errors, spec["tolerations"], old["tolerations"]);
  CheckGatesUpdate(errors, spec["schedulingGates"], old["schedulingGates"]);
  // The scheduler has not seen a gated pod yet, so where it may run can be narrowed.
  const bool was_gated = !old["schedulingGates"].empty();
  if (was_gated) {
    CheckNodeSelectorChange(errors, FieldPath("spec.nodeSelector"), spec["nodeSelector"],
                            old["nodeSelector"]);
    CheckNodeAffinityChange(errors, FieldPath("spec.affinity.nodeAffinity"),
                            spec["affinity"]["nodeAffinity"], old["affinity"]["nodeAffinity"]);
  }
  if (!api::Equal(FixedSpec(spec, was_gated)->root(), FixedSpec(old, was_gated)->root())) {
    errors.push_back(
        Forbidden("spec",
                  "pod updates may not change fields other than `spec.containers[*].image`,"
                  "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
                  "`spec.tolerations` (only additions to existing tolerations),"
                  "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
                  "previously negative)"));
  }
  return errors;
}

}  // namespace

FieldErrors ValidatePodSpec(Value spec, Value before, const std::string& path,
                            const StrategyContext& context) {
  FieldErrors errors;
  CheckPodSpec(errors, FieldPath(path), spec, Value(), context);
  if (errors.empty() || !before.exists()) return errors;
  FieldErrors known;
  CheckPodSpec(known, FieldPath(path), before, Value(), context);
  return NewErrors(std::move(errors), known);
}

FieldErrors ValidatePod(Value pod, const StrategyContext& context) {
  FieldErrors errors;
  CheckWholePod(errors, pod, context);
  const Value spec = pod["spec"];
  if (!spec["ephemeralContainers"].empty()) {
    errors.push_back(Forbidden("spec.ephemeralContainers", "cannot be set on create"));
  }
  if (!spec["nodeName"].str().empty() && !spec["schedulingGates"].empty()) {
    errors.push_back(
        Forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"));
  }
  return errors;
}

FieldErrors ValidatePodUpdate(Value pod, Value before, std::string_view subresource,
                              const StrategyContext& context) {
  if (subresource == "resize") return ValidatePodResize(pod, before, context.gates);
  const bool ephemeral = subresource == "ephemeralcontainers";
  if (ephemeral && IsMirror(before["metadata"])) {
    return {Forbidden(FieldPath(), "static pods do not support ephemeral containers")};
  }
  FieldErrors errors;
  // Most updates are about metadata. A pod that was stored under older rules stays valid.
  if (!api::Equal(pod["spec"], before["spec"]) ||
      !api::Equal(pod["metadata"]["annotations"], before["metadata"]["annotations"])) {
    CheckWholePod(errors, pod, context);
    if (!errors.empty()) {
      FieldErrors known;
      CheckWholePod(known, before, context);
      errors = NewErrors(std::move(errors), known);
    }
  }
  CheckAnnotationsUpdate(errors, pod, before);
  if (ephemeral) {
    CheckEphemeralContainersUpdate(errors, pod, before);
  } else {
    errors.Append(CheckSpecUpdate(pod, before));
  }
  return errors;
}

FieldErrors ValidatePodStatusUpdate(Value pod, Value before, const StrategyContext&) {
  FieldErrors errors = ValidatePodStatus(pod, before);
  CheckAnnotationsUpdate(errors, pod, before);
  std::set<std::string_view> known;
  for (const Value claim : pod["spec"]["resourceClaims"].elements()) {
    known.insert(claim["name"].str());
  }
  std::set<std::string_view> seen;
  std::size_t index = 0;
  for (const Value status : pod["status"]["resourceClaimStatuses"].elements()) {
    const FieldPath path = FieldPath("status.resourceClaimStatuses").Index(index++);
    const std::string_view name = status["name"].str();
    if (!known.contains(name)) {
      errors.push_back(Invalid(path.Child("name"), name,
                               "must match the name of an entry in `spec.resourceClaims`"));
    }
    if (!seen.insert(name).second) errors.push_back(Duplicate(path.Child("name"), name));
    const Value claim = status["resourceClaimName"];
    if (claim.has_value()) CheckDnsSubdomain(errors, path.Child("resourceClaimName"), claim.str());
  }
  return errors;
}

}  // namespace drakkar::apiserver
