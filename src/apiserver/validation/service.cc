#include "apiserver/validation/service.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "apiserver/validation/cause.h"
#include "apiserver/validation/metadata.h"
#include "apiserver/validation/value_rules.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::FieldPath;
using api::Value;

constexpr std::string_view kOnlyLoadBalancer = "may only be used when `type` is 'LoadBalancer'";

FieldPath Spec(std::string_view field) {
  return FieldPath("spec").Child(field);
}

bool IsExternal(Value spec) {
  return spec["type"].str() == "ExternalName";
}

bool IsLoadBalancer(Value spec) {
  return spec["type"].str() == "LoadBalancer";
}

// The port as Kubernetes shows it: with the names of its internal type.
api::BadValue ShownPort(std::int64_t number, std::string_view protocol) {
  return api::BadValue::Literal(StrCat(R"({"Name":"","Protocol":)", Quote(protocol),
                                       R"(,"AppProtocol":null,"Port":)", number,
                                       R"(,"TargetPort":0,"NodePort":0})"));
}

void CheckPorts(FieldErrors& errors, Value spec) {
  const Value ports = spec["ports"];
  const FieldPath path = Spec("ports");
  if (ports.empty() && !IsExternal(spec) && !IsHeadless(spec)) errors.push_back(Required(path));
  std::set<std::string_view> names;
  std::set<std::pair<std::string_view, std::int64_t>> numbers, node_ports;
  std::size_t index = 0;
  for (const Value port : ports.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++);
    const std::string_view name = port["name"].str();
    if (!name.empty()) {
      CheckDnsLabel(errors, at.Child("name"), name);
      if (!names.insert(name).second) errors.push_back(Duplicate(at.Child("name"), name));
    } else if (ports.size() > 1) {
      errors.push_back(Required(at.Child("name")));
    }
    const std::int64_t number = port["port"].integer();
    const std::string_view protocol = port["protocol"].str();
    CheckPortNumber(errors, at.Child("port"), number);
    RequireOneOf(errors, at.Child("protocol"), protocol, {"SCTP", "TCP", "UDP"});
    CheckPort(errors, at.Child("targetPort"), port["targetPort"]);
    if (const Value application = port["appProtocol"]; application.has_value()) {
      AddProblems(errors, at.Child("appProtocol"), application.str(),
                  api::CheckLabelKey(application.str()));
    }
    const std::int64_t node_port = port["nodePort"].integer();
    if (node_port != 0 && spec["type"].str() == "ClusterIP") {
      errors.push_back(
          Forbidden(at.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"));
    }
    if (node_port != 0 && !node_ports.emplace(protocol, node_port).second) {
      errors.push_back(Duplicate(at.Child("nodePort"), node_port));
    }
    if (!numbers.emplace(protocol, number).second) {
      errors.push_back(Duplicate(at, ShownPort(number, protocol)));
    }
  }
}

// A Service that is only a name for another host has no addresses of its own.
void CheckExternalName(FieldErrors& errors, Value spec) {
  constexpr std::string_view kWhy = "may not be set for ExternalName services";
  if (!spec["clusterIPs"].empty() || !spec["clusterIP"].str().empty()) {
    errors.push_back(Forbidden(Spec("clusterIPs"), kWhy));
  }
  if (!spec["ipFamilies"].empty()) errors.push_back(Forbidden(Spec("ipFamilies"), kWhy));
  if (spec["ipFamilyPolicy"].has_value()) {
    errors.push_back(Forbidden(Spec("ipFamilyPolicy"), kWhy));
  }
  std::string_view name = spec["externalName"].str();
  if (name.ends_with('.')) name.remove_suffix(1);
  RequireDnsSubdomain(errors, Spec("externalName"), name);
}

void CheckAffinity(FieldErrors& errors, Value spec) {
  constexpr std::int64_t kMaxSeconds = 86'400;
  const std::string_view affinity = spec["sessionAffinity"].str();
  RequireOneOf(errors, Spec("sessionAffinity"), affinity, {"ClientIP", "None"});
  const Value config = spec["sessionAffinityConfig"];
  const FieldPath path = Spec("sessionAffinityConfig");
  if (affinity == "None" && config.has_value()) {
    errors.push_back(Forbidden(path, "must not be set when session affinity is None"));
  }
  if (affinity != "ClientIP") return;
  const Value seconds = config["clientIP"]["timeoutSeconds"];
  const FieldPath at = path.Child("clientIP").Child("timeoutSeconds");
  if (!seconds.has_value()) {
    errors.push_back(Required(at, "when session affinity type is ClientIP"));
  } else if (seconds.integer() <= 0 || seconds.integer() > kMaxSeconds) {
    errors.push_back(Invalid(at, seconds.integer(),
                             StrCat("must be greater than 0 and less than ", kMaxSeconds)));
  }
}

bool IsV6(std::string_view address) {
  return address.find(':') != std::string_view::npos;
}

// The addresses and their families, and that the two agree.
void CheckFamilies(FieldErrors& errors, Value spec) {
  const Value addresses = spec["clusterIPs"];
  const Value families = spec["ipFamilies"];
  const FieldPath path = Spec("clusterIPs");
  const std::string_view first = spec["clusterIP"].str();
  if (!first.empty() && addresses.at(0).str() != first) {
    errors.push_back(Invalid(path, addresses, "first value must match `clusterIP`"));
  }
  std::set<std::string_view> seen;
  std::size_t index = 0;
  for (const Value family : families.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = Spec("ipFamilies").Index(index++);
    CheckOneOf(errors, at, family.str(), {"IPv4", "IPv6"});
    if (!seen.insert(family.str()).second) errors.push_back(Duplicate(at, family.str()));
  }
  if (const Value policy = spec["ipFamilyPolicy"]; policy.has_value()) {
    CheckOneOf(errors, Spec("ipFamilyPolicy"), policy.str(),
               {"SingleStack", "PreferDualStack", "RequireDualStack"});
  }
  bool valid = true;
  index = 0;
  for (const Value address : addresses.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const std::size_t place = index++;
    if (place == 0 && address.str() == "None") {
      if (addresses.size() == 1) continue;
      valid = false;
      errors.push_back(Invalid(path, addresses, "'None' must be the first and only value"));
      continue;
    }
    const std::size_t before = errors.size();
    CheckIpAddress(errors, path.Index(place), address.str());
    valid = valid && errors.size() == before;
  }
  if (addresses.size() > 2) {
    errors.push_back(Invalid(path, addresses, "may only hold up to 2 values"));
  }
  if (!valid || IsHeadless(spec)) return;
  if (addresses.size() > 1 &&
      (addresses.size() > 2 || IsV6(addresses.at(0).str()) == IsV6(addresses.at(1).str()))) {
    errors.push_back(
        Invalid(path, addresses, "may specify no more than one IP for each IP family"));
  }
  for (std::size_t i = 0; i < std::min(addresses.size(), families.size()); ++i) {
    const std::string_view family = families.at(i).str();
    const std::string_view address = addresses.at(i).str();
    if (IsV6(address) ? family != "IPv4" : family != "IPv6") continue;
    errors.push_back(
        Invalid(path.Index(i), address,
                StrCat("expected an ", family, " value as indicated by `ipFamilies[", i, "]`")));
  }
}

// Only one family is configured. A headless Service without a selector has no addresses that the
// server would give, so it may have both.
void CheckConfiguredFamilies(FieldErrors& errors, Value spec) {
  if (IsHeadless(spec) && spec["selector"].empty()) return;
  const std::string_view policy = spec["ipFamilyPolicy"].str();
  const FieldPath policy_path = Spec("ipFamilyPolicy");
  if (policy == "SingleStack" && spec["clusterIPs"].size() == 2) {
    errors.push_back(Invalid(policy_path, policy,
                             "must be 'RequireDualStack' or 'PreferDualStack' when multiple "
                             "cluster IPs are specified"));
  }
  if (policy == "SingleStack" && spec["ipFamilies"].size() == 2) {
    errors.push_back(Invalid(policy_path, policy,
                             "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP "
                             "families are specified"));
  }
  if (policy == "RequireDualStack") {
    errors.push_back(
        Invalid(policy_path, policy, "this cluster is not configured for dual-stack services"));
  }
  std::size_t index = 0;
  for (const Value family : spec["ipFamilies"].elements()) {
    const FieldPath at = Spec("ipFamilies").Index(index++);
    if (family.str() != "IPv6") continue;
    errors.push_back(Invalid(at, family.str(), "not configured on this cluster"));
  }
}

void CheckExternalAddresses(FieldErrors& errors, Value spec, Value before) {
  std::set<std::string_view> known;
  for (const Value address : before["externalIPs"].elements()) known.insert(address.str());
  std::size_t index = 0;
  for (const Value address : spec["externalIPs"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = Spec("externalIPs").Index(index++);
    if (known.contains(address.str())) continue;
    const std::size_t count = errors.size();
    CheckIpAddress(errors, at, address.str());
    if (errors.size() == count) CheckEndpointAddress(errors, at, address.str());
  }
}

void CheckLoadBalancer(FieldErrors& errors, Value service, Value before) {
  constexpr std::string_view kAnnotation = "service.beta.kubernetes.io/load-balancer-source-ranges";
  const Value spec = service["spec"];
  const bool is_balanced = IsLoadBalancer(spec);
  const Value ranges = spec["loadBalancerSourceRanges"];
  const Value annotation = service["metadata"]["annotations"].Entry(kAnnotation);
  if (!ranges.empty()) {
    // The capitalization is that of Kubernetes.
    const FieldPath path = Spec("LoadBalancerSourceRanges");
    if (!is_balanced) errors.push_back(Forbidden(path, kOnlyLoadBalancer));
    std::set<std::string_view> known;
    for (const Value range : before["spec"]["loadBalancerSourceRanges"].elements()) {
      known.insert(Trim(range.str()));
    }
    std::size_t index = 0;
    for (const Value range : ranges.elements()) {
      if (WorkBudget::IsExceeded()) return;
      const FieldPath at = path.Index(index++);
      if (!known.contains(Trim(range.str()))) CheckNetwork(errors, at, Trim(range.str()));
    }
  } else if (annotation.exists()) {
    const FieldPath path = FieldPath("metadata").Child("annotations").Key(kAnnotation);
    if (!is_balanced) errors.push_back(Forbidden(path, kOnlyLoadBalancer));
    const bool changed =
        annotation.str() != before["metadata"]["annotations"].Entry(kAnnotation).str();
    if (changed && !Trim(annotation.str()).empty()) {
      for (const std::string_view range : Split(annotation.str(), ',')) {
        if (WorkBudget::IsExceeded()) return;
        CheckNetwork(errors, path, Trim(range));
      }
    }
  }
  if (!is_balanced && spec["allocateLoadBalancerNodePorts"].has_value()) {
    errors.push_back(Forbidden(Spec("allocateLoadBalancerNodePorts"), kOnlyLoadBalancer));
  }
  const Value balancer = spec["loadBalancerClass"];
  const FieldPath path = Spec("loadBalancerClass");
  if (!balancer.has_value()) {
    // Checked below.
  } else if (is_balanced) {
    AddProblems(errors, path, balancer.str(), api::CheckLabelKey(balancer.str()));
  } else {
    errors.push_back(Forbidden(path, kOnlyLoadBalancer));
  }
  if (!is_balanced || !IsLoadBalancer(before["spec"])) return;
  const Value old = before["spec"]["loadBalancerClass"];
  if (balancer.has_value() != old.has_value() || balancer.str() != old.str()) {
    errors.push_back(Invalid(path, balancer, "may not change once set"));
  }
}

void CheckTraffic(FieldErrors& errors, Value spec, Value before) {
  const std::string_view external = spec["externalTrafficPolicy"].str();
  const FieldPath external_path = Spec("externalTrafficPolicy");
  if (IsExternallyAccessible(spec)) {
    RequireOneOf(errors, external_path, external, {"Cluster", "Local"});
  } else if (!external.empty()) {
    errors.push_back(
        Invalid(external_path, external, "may only be set for externally-accessible services"));
  }
  const std::int64_t health = spec["healthCheckNodePort"].integer();
  const FieldPath health_path = Spec("healthCheckNodePort");
  if (!NeedsHealthCheck(spec)) {
    if (health != 0) {
      errors.push_back(Invalid(health_path, health,
                               "may only be set when `type` is 'LoadBalancer' and "
                               "`externalTrafficPolicy` is 'Local'"));
    }
  } else {
    CheckPortNumber(errors, health_path, health);
    if (NeedsHealthCheck(before) && before["healthCheckNodePort"].integer() != health) {
      errors.push_back(Forbidden(health_path, "field is immutable"));
    }
  }
  const Value internal = spec["internalTrafficPolicy"];
  if (internal.has_value()) {
    CheckOneOf(errors, Spec("internalTrafficPolicy"), internal.str(), {"Cluster", "Local"});
  } else if (!IsExternal(spec)) {
    errors.push_back(Required(Spec("internalTrafficPolicy")));
  }
  const Value distribution = spec["trafficDistribution"];
  if (distribution.has_value()) {
    CheckOneOf(errors, Spec("trafficDistribution"), distribution.str(),
               {"PreferClose", "PreferSameZone", "PreferSameNode"});
  }
}

}  // namespace

bool IsServersOwn(Value service) {
  const Value metadata = service["metadata"];
  return metadata["name"].str() == "kubernetes" && metadata["namespace"].str() == "default";
}

bool IsHeadless(Value spec) {
  return spec["clusterIPs"].size() == 1 && spec["clusterIPs"].at(0).str() == "None";
}

bool IsExposed(std::string_view type) {
  return type == "NodePort" || type == "LoadBalancer";
}

bool IsExternallyAccessible(Value spec) {
  const std::string_view type = spec["type"].str();
  return IsExposed(type) || (type == "ClusterIP" && !spec["externalIPs"].empty());
}

bool NeedsHealthCheck(Value spec) {
  return IsLoadBalancer(spec) && spec["externalTrafficPolicy"].str() == "Local";
}

FieldErrors ValidateService(Value service, Value before) {
  FieldErrors errors;
  const Value spec = service["spec"];
  CheckPorts(errors, spec);
  if (IsExternal(spec)) {
    CheckExternalName(errors, spec);
  } else {
    if (IsExposed(spec["type"].str()) && IsHeadless(spec)) {
      errors.push_back(
          Invalid(Spec("clusterIPs").Index(0), "None",
                  StrCat("may not be set to 'None' for ", spec["type"].str(), " services")));
    }
    CheckFamilies(errors, spec);
    const Value old = before["spec"];
    const bool same = before.exists() && api::Equal(spec["ipFamilies"], old["ipFamilies"]) &&
                      api::Equal(spec["ipFamilyPolicy"], old["ipFamilyPolicy"]);
    if (!same && !IsServersOwn(service)) CheckConfiguredFamilies(errors, spec);
  }
  Findings labels;
  CheckLabels(labels, Spec("selector"), spec["selector"]);
  errors.Append(PlainErrors(labels));
  CheckAffinity(errors, spec);
  CheckExternalAddresses(errors, spec, before["spec"]);
  RequireOneOf(errors, Spec("type"), spec["type"].str(),
               {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"});
  CheckLoadBalancer(errors, service, before);
  CheckTraffic(errors, spec, before["spec"]);
  return errors;
}

FieldErrors ValidateServiceStatus(Value service) {
  FieldErrors errors;
  const Value points = service["status"]["loadBalancer"]["ingress"];
  const FieldPath path = FieldPath("status").Child("loadBalancer").Child("ingress");
  if (!points.empty() && !IsLoadBalancer(service["spec"])) {
    errors.push_back(Forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'"));
    return errors;
  }
  std::size_t index = 0;
  for (const Value point : points.elements()) {
    if (WorkBudget::IsExceeded()) return errors;
    const FieldPath at = path.Index(index++);
    const std::string_view address = point["ip"].str();
    const Value mode = point["ipMode"];
    if (!address.empty()) CheckIpAddress(errors, at.Child("ip"), address);
    if (mode.has_value() && address.empty()) {
      errors.push_back(Forbidden(at.Child("ipMode"), "may not be specified when `ip` is not set"));
    } else if (mode.has_value()) {
      CheckOneOf(errors, at.Child("ipMode"), mode.str(), {"Proxy", "VIP"});
    }
    const std::string_view host = point["hostname"].str();
    if (!host.empty()) CheckDnsSubdomain(errors, at.Child("hostname"), host);
  }
  return errors;
}

}  // namespace drakkar::apiserver
