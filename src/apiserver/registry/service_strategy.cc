#include "apiserver/registry/service_strategy.h"

#include <algorithm>
#include <array>
#include <set>

#include "api/meta/interface_address.h"
#include "apiserver/validation/cause.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::FieldErrors;
using api::Value;

constexpr std::uint32_t kFirstAddress = (10u << 24) | (96u << 16);  // kClusterNetwork
constexpr std::uint32_t kAddresses = 1u << 20;
constexpr int kAttempts = 100;
constexpr std::int64_t kAffinitySeconds = 10'800;

std::string FormatAddress(std::uint32_t address) {
  return StrCat(address >> 24, ".", (address >> 16) & 255, ".", (address >> 8) & 255, ".",
                address & 255);
}

bool IsAddress(std::string_view text) {
  const bool is_v6 = text.find(':') != std::string_view::npos;
  return api::CheckInterfaceAddress(StrCat(text, is_v6 ? "/128" : "/32")).ok();
}

bool IsExposed(std::string_view type) {
  return type == "NodePort" || type == "LoadBalancer";
}

bool HasAddress(Value service, std::string_view address) {
  if (service["spec"]["clusterIP"].str() == address) return true;
  for (Value each : service["spec"]["clusterIPs"].elements()) {
    if (each.str() == address) return true;
  }
  return false;
}

// The Service that has an address or node port; null if none has it.
api::ObjectPtr FindOwner(const StrategyContext& context, std::string_view address, int node_port,
                         std::string_view protocol, std::string_view but_uid) {
  if (!context.find_first) return nullptr;
  return context.find_first("", "services", [&](const api::Object& service) {
    if (service.uid() == but_uid) return false;
    if (!address.empty()) return HasAddress(service.root(), address);
    for (Value port : service["spec"]["ports"].elements()) {
      if (port["nodePort"].integer() == node_port && port["protocol"].str("TCP") == protocol) {
        return true;
      }
    }
    return service["spec"]["healthCheckNodePort"].integer() == node_port;
  });
}

std::string FreeAddress(const StrategyContext& context) {
  for (int i = 0; i < kAttempts; ++i) {
    // Neither the network's own address nor its broadcast address.
    const auto offset = static_cast<std::uint32_t>(1 + context.random.Below(kAddresses - 2));
    std::string address = FormatAddress(kFirstAddress + offset);
    if (FindOwner(context, address, 0, "", "") == nullptr) return address;
  }
  return {};
}

std::int64_t FreeNodePort(const StrategyContext& context, std::string_view protocol) {
  constexpr int kCount = ServiceStrategy::kLastNodePort - ServiceStrategy::kFirstNodePort + 1;
  const auto begin = static_cast<int>(context.random.Below(kCount));
  // One pass over the Services instead of one per port.
  std::set<std::int64_t> taken;
  if (context.find_first) {
    context.find_first("", "services", [&](const api::Object& service) {
      for (Value port : service["spec"]["ports"].elements()) {
        if (port["protocol"].str("TCP") == protocol) taken.insert(port["nodePort"].integer());
      }
      taken.insert(service["spec"]["healthCheckNodePort"].integer());
      return false;
    });
  }
  for (int i = 0; i < kCount; ++i) {
    const std::int64_t port = ServiceStrategy::kFirstNodePort + (begin + i) % kCount;
    if (!taken.contains(port)) return port;
  }
  return 0;
}

void SetMissing(Draft& spec, api::FieldName field, Draft value) {
  if (!spec.Has(field) || !spec[field].has_value()) spec[field] = std::move(value);
}

// Addresses and ports that the Service must have but does not say.
void Allocate(Draft& object, const StrategyContext& context) {
  Draft& spec = object["spec"];
  const std::string type(spec["type"].str());
  if (type == "ExternalName") return;
  std::string address(spec["clusterIP"].str());
  if (address.empty() && spec["clusterIPs"].size() > 0) address = spec["clusterIPs"].at(0).str();
  if (address.empty()) address = FreeAddress(context);
  if (!address.empty()) {
    spec["clusterIP"] = address;
    if (spec["clusterIPs"].size() == 0) spec["clusterIPs"].Append(address);
  }
  if (!spec.Has("ipFamilies")) {
    spec["ipFamilies"].Append(address.find(':') != std::string::npos ? "IPv6" : "IPv4");
  }
  SetMissing(spec, "ipFamilyPolicy", "SingleStack");
  if (!IsExposed(type)) return;
  const bool wants_ports =
      type == "NodePort" || spec["allocateLoadBalancerNodePorts"].boolean(true);
  if (!wants_ports || !spec["ports"].is_array()) return;
  std::set<std::pair<std::string, std::int64_t>> here;
  for (std::size_t i = 0; i < spec["ports"].size(); ++i) {
    Draft& port = spec["ports"].at(i);
    if (!port.is_object()) continue;
    const std::string protocol(port["protocol"].str("TCP"));
    if (port["nodePort"].integer() == 0) {
      std::int64_t free = FreeNodePort(context, protocol);
      while (free != 0 && here.contains({protocol, free})) free = FreeNodePort(context, protocol);
      port["nodePort"] = free;
    }
    here.emplace(protocol, port["nodePort"].integer());
  }
}

void CheckPorts(FieldErrors& errors, Value spec) {
  const Value ports = spec["ports"];
  const std::string_view type = spec["type"].str();
  const bool headless = spec["clusterIP"].str() == "None";
  if (ports.empty() && type != "ExternalName" && !headless) {
    errors.push_back(Required("spec.ports"));
  }
  std::set<std::string_view> names;
  std::set<std::pair<std::string_view, std::int64_t>> numbers;
  std::size_t index = 0;
  for (Value port : ports.elements()) {
    const std::string path = StrCat("spec.ports[", index++, "]");
    const std::string_view name = port["name"].str();
    if (name.empty()) {
      if (ports.size() > 1) errors.push_back(Required(path + ".name"));
    } else {
      AddProblems(errors, path + ".name", name, api::CheckDnsLabel(name));
      if (!names.insert(name).second) errors.push_back(Duplicate(path + ".name", name));
    }
    const std::int64_t number = port["port"].integer();
    if (number < 1 || number > 65'535) {
      errors.push_back(Invalid(path + ".port", number, "must be between 1 and 65535, inclusive"));
    }
    const std::string_view protocol = port["protocol"].str();
    if (protocol != "TCP" && protocol != "UDP" && protocol != "SCTP") {
      errors.push_back(NotSupported(path + ".protocol", protocol, {"SCTP", "TCP", "UDP"}));
    }
    if (!numbers.emplace(protocol, number).second) {
      errors.push_back(Duplicate(path, StrCat(number, "/", protocol)));
    }
    if (const auto target = port["targetPort"].optional_integer();
        target && (*target < 1 || *target > 65'535)) {
      errors.push_back(
          Invalid(path + ".targetPort", *target, "must be between 1 and 65535, inclusive"));
    }
    const std::int64_t node_port = port["nodePort"].integer();
    if (node_port != 0 && !IsExposed(type)) {
      errors.push_back(
          Forbidden(path + ".nodePort", StrCat("may not be used when `type` is '", type, "'")));
    } else if (node_port != 0 && (node_port < ServiceStrategy::kFirstNodePort ||
                                  node_port > ServiceStrategy::kLastNodePort)) {
      errors.push_back(
          Invalid(path + ".nodePort", node_port,
                  StrCat("provided port is not in the valid range. The range of valid ports is ",
                         ServiceStrategy::kFirstNodePort, "-", ServiceStrategy::kLastNodePort)));
    }
  }
}

void CheckAddresses(FieldErrors& errors, Value object, const StrategyContext& context) {
  const Value spec = object["spec"];
  const std::string_view address = spec["clusterIP"].str();
  if (spec["type"].str() == "ExternalName") {
    if (!address.empty()) {
      errors.push_back(
          Forbidden("spec.clusterIPs", "may not be set when `type` is 'ExternalName'"));
    }
    return;
  }
  if (address.empty()) {
    errors.push_back(Invalid("spec.clusterIPs", address,
                             "failed to allocate a serviceIP: range is "
                             "full"));
    return;
  }
  if (spec["clusterIPs"].at(0).str() != address) {
    errors.push_back(
        Invalid("spec.clusterIPs", spec["clusterIPs"], "first value must match `clusterIP`"));
  }
  if (address == "None") {
    if (IsExposed(spec["type"].str())) {
      errors.push_back(Invalid("spec.clusterIPs[0]", address,
                               "may not be set to 'None' for LoadBalancer services"));
    }
    return;
  }
  std::size_t index = 0;
  for (Value each : spec["clusterIPs"].elements()) {
    const std::string path = StrCat("spec.clusterIPs[", index++, "]");
    if (each.str() != "None" && !IsAddress(each.str())) {
      errors.push_back(Invalid(path, each.str(),
                               "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"));
    } else if (FindOwner(context, each.str(), 0, "", object["metadata"]["uid"].str()) != nullptr) {
      errors.push_back(Invalid(
          path, each.str(),
          StrCat("failed to allocate IP ", each.str(), ": provided IP is already allocated")));
    }
  }
}

void CheckNodePorts(FieldErrors& errors, Value object, Value before,
                    const StrategyContext& context) {
  std::set<std::int64_t> old;
  for (Value port : before["spec"]["ports"].elements()) old.insert(port["nodePort"].integer());
  std::size_t index = 0;
  for (Value port : object["spec"]["ports"].elements()) {
    const std::string path = StrCat("spec.ports[", index++, "].nodePort");
    const std::int64_t number = port["nodePort"].integer();
    if (number == 0 || old.contains(number)) continue;
    if (FindOwner(context, "", static_cast<int>(number), port["protocol"].str("TCP"),
                  object["metadata"]["uid"].str()) != nullptr) {
      errors.push_back(Invalid(path, number, "provided port is already allocated"));
    }
  }
}

FieldErrors Check(Value object, Value before, const StrategyContext& context) {
  FieldErrors errors;
  const Value spec = object["spec"];
  const std::string_view type = spec["type"].str();
  constexpr std::array kTypes = {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"};
  if (std::ranges::find(kTypes, type) == kTypes.end()) {
    errors.push_back(
        NotSupported("spec.type", type, {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"}));
    return errors;
  }
  CheckPorts(errors, spec);
  CheckAddresses(errors, object, context);
  CheckNodePorts(errors, object, before, context);
  if (type == "ExternalName") {
    std::string_view name = spec["externalName"].str();
    if (name.empty()) {
      errors.push_back(Required("spec.externalName"));
    } else {
      if (name.ends_with('.')) name.remove_suffix(1);
      AddProblems(errors, "spec.externalName", name, api::CheckDnsSubdomain(name));
    }
  }
  for (const auto& [key, name, value] : spec["selector"].members()) {
    AddProblems(errors, "spec.selector", name, api::CheckLabelKey(name));
    AddProblems(errors, "spec.selector", value.str(), api::CheckLabelValue(value.str()));
  }
  const std::string_view affinity = spec["sessionAffinity"].str();
  if (affinity != "None" && affinity != "ClientIP") {
    errors.push_back(NotSupported("spec.sessionAffinity", affinity, {"ClientIP", "None"}));
  }
  const Value external = spec["externalTrafficPolicy"];
  if (!external.str().empty()) {
    if (!IsExposed(type) && spec["externalIPs"].empty()) {
      errors.push_back(Invalid("spec.externalTrafficPolicy", external.str(),
                               "may only be set for externally-accessible services"));
    } else if (external.str() != "Cluster" && external.str() != "Local") {
      errors.push_back(
          NotSupported("spec.externalTrafficPolicy", external.str(), {"Cluster", "Local"}));
    }
  }
  const std::string_view internal = spec["internalTrafficPolicy"].str();
  if (!internal.empty() && internal != "Cluster" && internal != "Local") {
    errors.push_back(NotSupported("spec.internalTrafficPolicy", internal, {"Cluster", "Local"}));
  }
  return errors;
}

}  // namespace

void ServiceStrategy::Default(Draft& object, const StrategyContext&) const {
  Draft& spec = object["spec"];
  if (!spec.is_object()) return;
  const std::string type(spec["type"].str());
  if (Draft* ports = spec.Find("ports"); ports != nullptr && ports->is_array()) {
    for (std::size_t i = 0; i < ports->size(); ++i) {
      Draft& port = ports->at(i);
      if (!port.is_object()) continue;
      const bool has_target =
          port["targetPort"].has_value() &&
          (port["targetPort"].integer() != 0 || !port["targetPort"].str().empty());
      if (!has_target) port["targetPort"] = port["port"].integer();
    }
  }
  if (spec["sessionAffinity"].str() == "ClientIP" &&
      !spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"].has_value()) {
    spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"] = kAffinitySeconds;
  } else if (spec["sessionAffinity"].str() == "None") {
    spec.Remove("sessionAffinityConfig");
  }
  if (IsExposed(type)) SetMissing(spec, "externalTrafficPolicy", "Cluster");
  if (type == "LoadBalancer") SetMissing(spec, "allocateLoadBalancerNodePorts", true);
  if (type != "ExternalName") SetMissing(spec, "internalTrafficPolicy", "Cluster");
}

void ServiceStrategy::PrepareForCreate(Draft& object, const StrategyContext& context) const {
  if (object["spec"].is_object()) Allocate(object, context);
}

void ServiceStrategy::PrepareForUpdate(Draft& object, Value before, std::string_view subresource,
                                       const StrategyContext& context) const {
  if (!subresource.empty() || !object["spec"].is_object()) return;
  Draft& spec = object["spec"];
  const Value old = before["spec"];
  const std::string type(spec["type"].str());
  if (type == "ExternalName") {
    // What belonged to the old type is removed, unless the client sets it.
    if (old["type"].str() != "ExternalName" && spec["clusterIP"].str() == old["clusterIP"].str()) {
      for (const api::FieldName field :
           api::FieldNames{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy",
                           "internalTrafficPolicy"}) {
        spec.Remove(field);
      }
    }
    return;
  }
  // Clients that know only a part of the fields leave out what the server allocated.
  for (const api::FieldName field :
       api::FieldNames{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}) {
    const Draft* given = spec.Find(field);
    const bool is_empty = given == nullptr || !given->has_value() ||
                          (given->is_array() ? given->size() == 0 : given->str().empty());
    if (is_empty && old[field].has_value()) spec[field] = Draft(api::CopyTree(old[field]));
  }
  if (!IsExposed(type)) {
    if (IsExposed(old["type"].str())) {
      for (std::size_t i = 0; i < spec["ports"].size(); ++i) {
        Draft& port = spec["ports"].at(i);
        for (Value each : old["ports"].elements()) {
          if (each["nodePort"].integer() == port["nodePort"].integer()) port.Remove("nodePort");
        }
      }
      if (spec["externalTrafficPolicy"].str() == old["externalTrafficPolicy"].str()) {
        spec.Remove("externalTrafficPolicy");
      }
      spec.Remove("allocateLoadBalancerNodePorts");
    }
  } else {
    for (std::size_t i = 0; spec["ports"].is_array() && i < spec["ports"].size(); ++i) {
      Draft& port = spec["ports"].at(i);
      if (!port.is_object() || port["nodePort"].integer() != 0) continue;
      for (Value each : old["ports"].elements()) {
        if (each["port"].integer() == port["port"].integer() &&
            each["protocol"].str() == port["protocol"].str() && each["nodePort"].integer() != 0) {
          port["nodePort"] = each["nodePort"].integer();
        }
      }
    }
  }
  Allocate(object, context);
}

FieldErrors ServiceStrategy::Validate(Value object, const StrategyContext& context) const {
  return Check(object, Value(), context);
}

FieldErrors ServiceStrategy::ValidateUpdate(Value object, Value before,
                                            std::string_view subresource,
                                            const StrategyContext& context) const {
  if (subresource == "status") return {};
  FieldErrors errors = Check(object, before, context);
  const Value now = object["spec"];
  const Value old = before["spec"];
  const bool both_have = now["type"].str() != "ExternalName" &&
                         old["type"].str() != "ExternalName" && !old["clusterIP"].str().empty();
  // The server's own Service follows the server's address.
  const Value metadata = object["metadata"];
  const bool is_own =
      metadata["name"].str() == "kubernetes" && metadata["namespace"].str() == "default";
  if (both_have && !is_own && now["clusterIP"].str() != old["clusterIP"].str()) {
    errors.push_back(
        Invalid("spec.clusterIPs[0]", now["clusterIPs"].at(0).str(), "may not change once set"));
  }
  return errors;
}

}  // namespace drakkar::apiserver
