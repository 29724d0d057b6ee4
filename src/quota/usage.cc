#include "quota/usage.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "api/meta/time.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "claims/pod_claims.h"

namespace drakkar::quota {

namespace {

using api::Quantity;
using api::Value;

constexpr std::string_view kResourceGroup = "resource.k8s.io";
constexpr std::string_view kDevicesSuffix = ".deviceclass.resource.k8s.io/devices";
constexpr std::string_view kImplicitResource = "deviceclass.resource.kubernetes.io/";
constexpr std::string_view kClassInfix = ".storageclass.storage.k8s.io/";
constexpr std::int64_t kMaxAllocated = 32;  // devices of one claim

std::string CountName(std::string_view group, std::string_view plural) {
  return group.empty() ? StrCat("count/", plural) : StrCat("count/", plural, ".", group);
}

bool IsTerminating(Value pod) {
  return pod["spec"]["activeDeadlineSeconds"].integer(-1) >= 0;
}

// Pods that have ended, or whose node failed to end them in time, use nothing.
bool IsCharged(Value pod, WallTime now) {
  const std::string_view phase = pod["status"]["phase"].str();
  if (phase == "Failed" || phase == "Succeeded") return false;
  const Value metadata = pod["metadata"];
  if (!metadata["deletionTimestamp"].has_value()) return true;
  const auto grace = metadata["deletionGracePeriodSeconds"].optional_integer();
  const Result<WallTime> deleted = api::ParseTime(metadata["deletionTimestamp"].str());
  if (!grace || !deleted.ok()) return true;
  return now <= *deleted + std::chrono::seconds(std::clamp<std::int64_t>(*grace, 0, 1 << 30));
}

// The names in spec.hard for the requests and limits of a pod or container.
Amounts ComputeUsage(const Amounts& requests, const Amounts& limits) {
  Amounts usage;
  for (const auto& [name, amount] : requests) {
    const bool is_plain = name == "cpu" || name == "memory" || name == "ephemeral-storage" ||
                          name.starts_with("hugepages-");
    if (is_plain) usage[name] = amount;
    usage[StrCat("requests.", name)] = amount;
  }
  for (const auto& [name, amount] : limits) {
    if (name == "cpu" || name == "memory" || name == "ephemeral-storage") {
      usage[StrCat("limits.", name)] = amount;
    }
  }
  return usage;
}

void AddPod(Amounts& usage, Value pod, WallTime now) {
  if (!IsCharged(pod, now)) return;
  usage["pods"] = Quantity(1);
  Add(usage, ComputeUsage(PodAmounts(pod["spec"], "requests", true),
                          PodAmounts(pod["spec"], "limits", true)));
}

void AddService(Amounts& usage, Value service) {
  usage["services"] = Quantity(1);
  const std::string_view type = service["spec"]["type"].str();
  const auto ports = static_cast<std::int64_t>(service["spec"]["ports"].size());
  std::int64_t node_ports = type == "NodePort" ? ports : 0;
  if (type == "LoadBalancer") {
    usage["services.loadbalancers"] = Quantity(1);
    node_ports = ports;
    if (service["spec"]["allocateLoadBalancerNodePorts"].optional_boolean() == false) {
      node_ports = 0;
      for (Value port : service["spec"]["ports"].elements()) {
        node_ports += port["nodePort"].integer() != 0;
      }
    }
  }
  usage["services.nodeports"] = Quantity(node_ports);
}

void AddVolumeClaim(Amounts& usage, Value claim) {
  usage["persistentvolumeclaims"] = Quantity(1);
  const std::string_view storage_class = claim["spec"]["storageClassName"].str();
  if (!storage_class.empty()) {
    usage[StrCat(storage_class, kClassInfix, "persistentvolumeclaims")] = Quantity(1);
  }
  const Result<Quantity> storage =
      Quantity::Parse(claim["spec"]["resources"]["requests"].Entry("storage").str());
  if (!storage.ok()) return;
  usage["requests.storage"] = *storage;
  if (!storage_class.empty()) {
    usage[StrCat(storage_class, kClassInfix, "requests.storage")] = *storage;
  }
}

std::int64_t DevicesOf(Value request) {
  const std::string_view mode = request["allocationMode"].str("ExactCount");
  if (mode == "ExactCount") return request["count"].integer(1);
  return mode == "All" ? kMaxAllocated : 0;
}

// Whether the claim is the one that the scheduler made for the extended resources of the pod. As
// long as the pod does not name it, that is the first of those that were made.
bool IsBehind(Value claim, const api::Object& pod, const Surroundings& around) {
  const std::string_view name = claim["metadata"]["name"].str();
  const std::string_view named = claims::ExtendedResourceClaim(pod.root());
  if (named == name) return true;
  const auto order = [](Value each) {
    const std::string_view created = each["metadata"]["creationTimestamp"].str();
    return std::tuple(created.empty(), created, each["metadata"]["name"].str());
  };
  bool others = false;
  around.visit_claims(pod.namespace_(), [&](const api::Object& other) {
    if (!claims::IsForExtendedResources(other.root()) ||
        !claims::IsMadeFor(other.root(), pod.uid())) {
      return;
    }
    others = others || other.name() == named || order(other.root()) < order(claim);
  });
  return !others;
}

// What the pod requests that the claim was made for; empty if there is none.
Amounts UsageBehind(Value claim, const Surroundings& around) {
  Amounts usage;
  if (!claims::IsForExtendedResources(claim)) return usage;
  const std::optional<claims::Owner> owner = claims::FindOwnerPod(claim);
  const api::ObjectPtr pod = owner ? around.find_pod(owner->key) : nullptr;
  if (pod != nullptr && pod->uid() == owner->uid && IsBehind(claim, *pod, around)) {
    AddPod(usage, pod->root(), around.now);
  }
  return usage;
}

void AddExtended(Amounts& usage, Value claim, const std::map<std::string, Quantity>& devices,
                 const Surroundings& around) {
  Amounts extended;
  for (const auto& [device_class, count] : devices) {
    const api::ObjectPtr known = around.find_class(device_class);
    if (known == nullptr) continue;
    extended[StrCat("requests.", kImplicitResource, device_class)] = count;
    const std::string_view resource = (*known)["spec"]["extendedResourceName"].str();
    if (!resource.empty()) extended[StrCat("requests.", resource)] = count;
  }
  if (extended.empty()) return;
  const Amounts requested = UsageBehind(claim, around);
  for (auto& [name, count] : extended) {
    if (const auto found = requested.find(name); found != requested.end()) {
      count.Subtract(found->second);
    }
    if (count.Sign() > 0) usage[name] = count;
  }
}

// Devices are counted before they are allocated, so the worst case counts.
void AddClaim(Amounts& usage, Value claim, const Surroundings& around) {
  std::map<std::string, Quantity> devices;
  for (Value request : claim["spec"]["devices"]["requests"].elements()) {
    std::map<std::string, std::int64_t> most;
    const auto consider = [&](Value each) {
      std::int64_t& count = most[std::string(each["deviceClassName"].str())];
      count = std::max(count, DevicesOf(each));
    };
    for (Value alternative : request["firstAvailable"].elements()) consider(alternative);
    if (request["exactly"].has_value()) consider(request["exactly"]);
    for (const auto& [device_class, count] : most) devices[device_class].Add(Quantity(count));
  }
  for (const auto& [device_class, count] : devices) {
    usage[StrCat(device_class, kDevicesSuffix)] = count;
  }
  if (around.find_class) AddExtended(usage, claim, devices, around);
}

bool IsBestEffort(Value pod) {
  const std::string_view qos = pod["status"]["qosClass"].str();
  if (!qos.empty()) return qos == "BestEffort";
  return PodAmounts(pod["spec"], "requests", false).empty() &&
         PodAmounts(pod["spec"], "limits", false).empty();
}

bool UsesOtherNamespaces(Value pod) {
  const auto crosses = [](Value term) {
    return !term["namespaces"].empty() || term["namespaceSelector"].has_value();
  };
  const Value affinity = pod["spec"]["affinity"];
  for (const Value each : {affinity["podAffinity"], affinity["podAntiAffinity"]}) {
    for (Value term : each["requiredDuringSchedulingIgnoredDuringExecution"].elements()) {
      if (crosses(term)) return true;
    }
    for (Value term : each["preferredDuringSchedulingIgnoredDuringExecution"].elements()) {
      if (crosses(term["podAffinityTerm"])) return true;
    }
  }
  return false;
}

bool HasScope(std::string_view scope, std::string_view op, Value values, Value pod) {
  if (scope == "Terminating") return IsTerminating(pod);
  if (scope == "NotTerminating") return !IsTerminating(pod);
  if (scope == "BestEffort") return IsBestEffort(pod);
  if (scope == "NotBestEffort") return !IsBestEffort(pod);
  if (scope == "CrossNamespacePodAffinity") return UsesOtherNamespaces(pod);
  if (scope != "PriorityClass") return false;
  const std::string_view name = pod["spec"]["priorityClassName"].str();
  if (op == "Exists") return !name.empty();
  if (op == "DoesNotExist") return name.empty();
  bool listed = false;
  for (Value value : values.elements()) listed = listed || value.str() == name;
  return op == "NotIn" ? !listed : op == "In" && listed;
}

}  // namespace

std::vector<ResourceName> CountedResources(std::string_view name) {
  if (name.starts_with("count/")) {
    name.remove_prefix(6);
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos) return {{"", std::string(name)}};
    return {{std::string(name.substr(dot + 1)), std::string(name.substr(0, dot))}};
  }
  constexpr std::array kCore = {"services",       "configmaps",
                                "secrets",        "replicationcontrollers",
                                "resourcequotas", "persistentvolumeclaims"};
  for (const std::string_view plural : kCore) {
    if (name == plural) return {{"", std::string(plural)}};
  }
  if (name == "services.nodeports" || name == "services.loadbalancers") return {{"", "services"}};
  if (name == "requests.storage" || name.find(kClassInfix) != std::string_view::npos) {
    return {{"", "persistentvolumeclaims"}};
  }
  const ResourceName claims{std::string(kResourceGroup), "resourceclaims"};
  if (name.ends_with(kDevicesSuffix)) return {claims};
  if (name.starts_with("requests.") && name.find('/') != std::string_view::npos) {
    return {{"", "pods"}, claims};
  }
  constexpr std::array kPod = {"pods", "cpu", "memory", "ephemeral-storage"};
  const bool is_pod = std::ranges::find(kPod, name) != kPod.end() ||
                      name.starts_with("requests.") || name.starts_with("limits.") ||
                      name.starts_with("hugepages-");
  if (is_pod) return {{"", "pods"}};
  return {};
}

Amounts UsageOf(std::string_view group, std::string_view plural, Value object,
                const Surroundings& around) {
  Amounts usage;
  usage[CountName(group, plural)] = Quantity(1);
  if (group.empty() && plural == "pods") {
    AddPod(usage, object, around.now);
  } else if (group.empty() && plural == "services") {
    AddService(usage, object);
  } else if (group.empty() && plural == "persistentvolumeclaims") {
    AddVolumeClaim(usage, object);
  } else if (group.empty()) {
    usage[std::string(plural)] = Quantity(1);
  } else if (group == kResourceGroup && plural == "resourceclaims") {
    AddClaim(usage, object, around);
  }
  return usage;
}

bool IsInScope(Value quota, std::string_view group, std::string_view plural, Value object) {
  const Value spec = quota["spec"];
  const Value selectors = spec["scopeSelector"]["matchExpressions"];
  if (spec["scopes"].empty() && selectors.empty()) return true;
  if (!group.empty() || plural != "pods") return false;
  for (Value scope : spec["scopes"].elements()) {
    if (!HasScope(scope.str(), "Exists", Value(), object)) return false;
  }
  for (Value selector : selectors.elements()) {
    if (!HasScope(selector["scopeName"].str(), selector["operator"].str(), selector["values"],
                  object)) {
      return false;
    }
  }
  return true;
}

std::string MissingResources(Value hard, Value pod_spec) {
  if (pod_spec["resources"].has_value()) return {};
  constexpr std::array kDemanded = {"cpu",    "limits.cpu",   "limits.memory",
                                    "memory", "requests.cpu", "requests.memory"};
  std::map<std::string_view, std::set<std::string_view>> missing;
  for (const api::FieldName list : api::FieldNames{"containers", "initContainers"}) {
    for (Value container : pod_spec[list].elements()) {
      const Value resources = container["resources"];
      const Amounts usage =
          ComputeUsage(ReadAmounts(resources["requests"]), ReadAmounts(resources["limits"]));
      for (const std::string_view name : kDemanded) {
        if (hard.Entry(name).exists() && !usage.contains(name)) {
          missing[name].insert(container["name"].str());
        }
      }
    }
  }
  std::vector<std::string> parts;
  for (const auto& [name, containers] : missing) {
    parts.push_back(StrCat(
        name, " for: ", Join(std::vector<std::string>(containers.begin(), containers.end()), ",")));
  }
  return parts.empty() ? std::string() : StrCat("must specify ", Join(parts, "; "));
}

std::string Format(const Amounts& amounts) {
  std::string text;
  for (const auto& [name, amount] : amounts) {
    text += StrCat(text.empty() ? "" : ",", name, "=", amount.ToString());
  }
  return text;
}

}  // namespace drakkar::quota
