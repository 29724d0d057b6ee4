#include "apiserver/registry/service_strategy.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "api/meta/interface_address.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/metadata.h"
#include "apiserver/validation/service.h"
#include "base/exec/work_budget.h"
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

// Visits the specs of all other Services. Callers ask about all addresses and ports of a Service in
// one pass, because both it and the number of Services may be large.
template <typename Visit>
void ForEachOther(const StrategyContext& context, std::string_view own_uid, Visit visit) {
  constexpr std::size_t kStepsPerService = 200;
  constexpr std::size_t kStepsPerPort = 50;
  if (!context.find_first) return;
  context.find_first("", "services", [&](const api::Object& service) {
    const Value spec = service["spec"];
    WorkBudget::Charge(kStepsPerService + kStepsPerPort * spec["ports"].size());
    if (WorkBudget::IsExceeded()) return true;
    if (service.uid() != own_uid) visit(spec);
    return false;
  });
}

template <typename Visit>
void ForEachAddress(Value spec, Visit visit) {
  if (const std::string_view first = spec["clusterIP"].str(); !first.empty()) visit(first);
  for (Value each : spec["clusterIPs"].elements()) visit(each.str());
}

std::string FreeAddress(const StrategyContext& context, std::string_view own_uid) {
  for (int i = 0; i < kAttempts && !WorkBudget::IsExceeded(); ++i) {
    // Neither the network's own address nor its broadcast address.
    const auto offset = static_cast<std::uint32_t>(1 + context.random.Below(kAddresses - 2));
    std::string candidate = FormatAddress(kFirstAddress + offset);
    bool is_taken = false;
    ForEachOther(context, own_uid, [&](Value spec) {
      ForEachAddress(spec, [&](std::string_view each) { is_taken |= each == candidate; });
    });
    if (!is_taken) return candidate;
  }
  return {};
}

// The node ports in use, by protocol. Other protocols, which validation rejects, have none.
class NodePorts {
 public:
  static constexpr std::array<std::string_view, 3> kProtocols = {"TCP", "UDP", "SCTP"};

  bool IsTaken(std::string_view protocol, std::int64_t port) const {
    const auto* taken = Of(protocol);
    return taken != nullptr && IsInRange(port) && taken->test(IndexOf(port));
  }
  void Take(std::string_view protocol, std::int64_t port) {
    auto* taken = Of(protocol);
    if (taken != nullptr && IsInRange(port)) taken->set(IndexOf(port));
  }
  void TakeForAll(std::int64_t port) {
    for (const std::string_view protocol : kProtocols) Take(protocol, port);
  }
  // Takes a free port; 0 if there is none.
  std::int64_t TakeFree(std::string_view protocol, Random& random) {
    auto* taken = Of(protocol);
    if (taken == nullptr || taken->all()) return 0;
    std::size_t index = random.Below(kCount);
    while (taken->test(index)) index = (index + 1) % kCount;
    taken->set(index);
    return ServiceStrategy::kFirstNodePort + static_cast<std::int64_t>(index);
  }
  static bool IsProtocol(std::string_view protocol) {
    return std::ranges::find(kProtocols, protocol) != kProtocols.end();
  }

 private:
  static constexpr std::size_t kCount =
      ServiceStrategy::kLastNodePort - ServiceStrategy::kFirstNodePort + 1;
  using Taken = std::bitset<kCount>;

  static bool IsInRange(std::int64_t port) {
    return port >= ServiceStrategy::kFirstNodePort && port <= ServiceStrategy::kLastNodePort;
  }
  static std::size_t IndexOf(std::int64_t port) {
    return static_cast<std::size_t>(port - ServiceStrategy::kFirstNodePort);
  }
  const Taken* Of(std::string_view protocol) const {
    const auto found = std::ranges::find(kProtocols, protocol);
    if (found == kProtocols.end()) return nullptr;
    return &taken_[static_cast<std::size_t>(found - kProtocols.begin())];
  }
  Taken* Of(std::string_view protocol) {
    return const_cast<Taken*>(std::as_const(*this).Of(protocol));
  }

  std::array<Taken, kProtocols.size()> taken_;
};

NodePorts PortsOfOthers(const StrategyContext& context, std::string_view own_uid) {
  NodePorts taken;
  ForEachOther(context, own_uid, [&](Value spec) {
    if (!IsExposed(spec["type"].str())) return;
    for (Value port : spec["ports"].elements()) {
      taken.Take(port["protocol"].str("TCP"), port["nodePort"].integer());
    }
    taken.TakeForAll(spec["healthCheckNodePort"].integer());
  });
  return taken;
}

bool WantsNodePorts(Value spec) {
  const std::string_view type = spec["type"].str();
  return type == "NodePort" ||
         (type == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"].boolean(true));
}

void SetMissing(Draft& spec, api::FieldName field, Draft value) {
  if (!spec.Has(field) || !spec[field].has_value()) spec[field] = std::move(value);
}

// IsExternallyAccessible for a Service that is being written.
bool HasExternalTraffic(Draft& spec, std::string_view type) {
  return IsExposed(type) || (type == "ClusterIP" && spec["externalIPs"].size() > 0);
}

// Gives every port without a node port a free one.
void AllocateNodePorts(Draft& ports, const StrategyContext& context, std::string_view own_uid) {
  const auto protocol_of = [](Draft& port) { return port["protocol"].str("TCP"); };
  std::vector<Draft*> without;
  NodePorts taken = PortsOfOthers(context, own_uid);
  for (Draft& port : ports.MutableElements()) {
    if (!port.is_object()) continue;
    const std::int64_t number = port["nodePort"].integer();
    if (number == 0) without.push_back(&port);
    taken.Take(protocol_of(port), number);
  }
  for (Draft* port : without) {
    (*port)["nodePort"] = taken.TakeFree(protocol_of(*port), context.random);
  }
}

// Allocates the addresses and ports that the Service must have but does not specify.
void Allocate(Draft& object, const StrategyContext& context) {
  Draft& spec = object["spec"];
  const std::string type(spec["type"].str());
  if (type == "ExternalName") return;
  const std::string own_uid(object["metadata"]["uid"].str());
  std::string address(spec["clusterIP"].str());
  if (address.empty() && spec["clusterIPs"].size() > 0) address = spec["clusterIPs"].at(0).str();
  if (address.empty()) address = FreeAddress(context, own_uid);
  if (!address.empty()) {
    spec["clusterIP"] = address;
    if (spec["clusterIPs"].size() == 0) spec["clusterIPs"].Append(address);
  }
  // The endpoints of a headless Service without a selector are the user's, of any family.
  const bool is_any = address == "None" && spec["selector"].size() == 0;
  const bool is_dual = is_any && !spec["ipFamilyPolicy"].has_value();
  SetMissing(spec, "ipFamilyPolicy", is_dual ? "RequireDualStack" : "SingleStack");
  if (spec["ipFamilies"].size() == 0) {
    const bool is_v6 = address.find(':') != std::string::npos;
    spec["ipFamilies"].Append(is_v6 ? "IPv6" : "IPv4");
  }
  if (is_any && spec["ipFamilies"].size() == 1 && spec["ipFamilyPolicy"].str() != "SingleStack") {
    const bool is_v6 = spec["ipFamilies"].at(0).str() == "IPv6";
    spec["ipFamilies"].Append(is_v6 ? "IPv4" : "IPv6");
  }
  if (!IsExposed(type)) return;
  const bool needs_health_check =
      type == "LoadBalancer" && spec["externalTrafficPolicy"].str() == "Local";
  if (needs_health_check && spec["healthCheckNodePort"].integer() == 0) {
    NodePorts taken = PortsOfOthers(context, own_uid);
    spec["healthCheckNodePort"] = taken.TakeFree("TCP", context.random);
  }
  const bool wants_ports =
      type == "NodePort" || spec["allocateLoadBalancerNodePorts"].boolean(true);
  if (wants_ports && spec["ports"].is_array()) AllocateNodePorts(spec["ports"], context, own_uid);
}

// The addresses that the Service asks for or was given.
void CheckAddresses(FieldErrors& errors, Value object, Value before,
                    const StrategyContext& context) {
  const Value spec = object["spec"];
  if (spec["type"].str() == "ExternalName" || IsHeadless(spec)) return;
  if (spec["clusterIP"].str().empty()) {
    errors.push_back(
        Invalid("spec.clusterIPs", "", "failed to allocate a serviceIP: range is full"));
    return;
  }
  std::set<std::string_view> own, old, taken;
  ForEachAddress(spec, [&](std::string_view each) { own.insert(each); });
  ForEachAddress(before["spec"], [&](std::string_view each) { old.insert(each); });
  ForEachOther(context, object["metadata"]["uid"].str(), [&](Value other) {
    ForEachAddress(other, [&](std::string_view each) {
      if (own.contains(each)) taken.insert(each);
    });
  });
  for (const Value each : spec["clusterIPs"].elements()) {
    const std::string_view address = each.str();
    if (!api::CheckIpAddress(address).empty()) continue;  // reported elsewhere
    std::string_view why;
    const bool is_own = IsServersOwn(object);
    if (old.contains(address)) continue;
    if (!is_own && address.find(':') != std::string_view::npos) {
      why = "IPv6 is not configured on this cluster";
    } else if (!is_own &&
               !api::IsStrictSubnet(StrCat(address, "/32"), ServiceStrategy::kClusterNetwork)
                    .value_or(false)) {
      why = "the provided network does not match the current range";
    } else if (taken.contains(address)) {
      why = "provided IP is already allocated";
    } else {
      continue;
    }
    errors.push_back(Invalid("spec.clusterIPs", spec["clusterIPs"],
                             StrCat("failed to allocate IP ", address, ": ", why)));
  }
}

void CheckNodePorts(FieldErrors& errors, Value object, Value before,
                    const StrategyContext& context) {
  std::set<std::int64_t> old;
  for (Value port : before["spec"]["ports"].elements()) old.insert(port["nodePort"].integer());
  const auto is_new = [&](std::int64_t number) { return number != 0 && !old.contains(number); };
  const Value spec = object["spec"];
  const bool wants_ports = WantsNodePorts(spec);
  std::optional<NodePorts> others;
  std::size_t index = 0;
  for (Value port : spec["ports"].elements()) {
    const std::string path = StrCat("spec.ports[", index++, "].nodePort");
    const std::string_view protocol = port["protocol"].str("TCP");
    const std::int64_t number = port["nodePort"].integer();
    if (number != 0 && IsExposed(spec["type"].str()) &&
        (number < ServiceStrategy::kFirstNodePort || number > ServiceStrategy::kLastNodePort)) {
      errors.push_back(
          Invalid(path, number,
                  StrCat("provided port is not in the valid range. The range of valid ports is ",
                         ServiceStrategy::kFirstNodePort, "-", ServiceStrategy::kLastNodePort)));
      continue;
    }
    if (number == 0 && wants_ports && NodePorts::IsProtocol(protocol)) {
      errors.push_back(Invalid(path, number, "failed to allocate a nodePort: range is full"));
    }
    if (!is_new(number)) continue;
    if (!others) others = PortsOfOthers(context, object["metadata"]["uid"].str());
    if (others->IsTaken(protocol, number)) {
      errors.push_back(Invalid(path, number, "provided port is already allocated"));
    }
  }
}

FieldErrors Check(Value object, Value before, const StrategyContext& context) {
  FieldErrors errors = ValidateService(object, before);
  CheckAddresses(errors, object, before, context);
  CheckNodePorts(errors, object, before, context);
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
  if (HasExternalTraffic(spec, type)) SetMissing(spec, "externalTrafficPolicy", "Cluster");
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
    // Remove what belonged to the old type, unless the client sets it.
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
  // What only load balancers have goes with the type, unless the client changes it.
  if (old["type"].str() == "LoadBalancer" && type != "LoadBalancer") {
    for (const api::FieldName field :
         api::FieldNames{"allocateLoadBalancerNodePorts", "loadBalancerClass"}) {
      const Draft* given = spec.Find(field);
      if (given != nullptr && api::Equal(given->Freeze()->root(), old[field])) spec.Remove(field);
    }
  }
  if (IsExternallyAccessible(old) && !HasExternalTraffic(spec, type) &&
      spec["externalTrafficPolicy"].str() == old["externalTrafficPolicy"].str()) {
    spec.Remove("externalTrafficPolicy");
  }
  const std::int64_t old_health = old["healthCheckNodePort"].integer();
  const std::int64_t health = spec["healthCheckNodePort"].integer();
  if (type == "LoadBalancer" && spec["externalTrafficPolicy"].str() == "Local") {
    if (health == 0 && old_health != 0) spec["healthCheckNodePort"] = old_health;
  } else if (health == old_health) {
    spec.Remove("healthCheckNodePort");
  }
  if (!IsExposed(type)) {
    if (IsExposed(old["type"].str())) {
      std::set<std::int64_t> had;
      for (Value each : old["ports"].elements()) had.insert(each["nodePort"].integer());
      for (std::size_t i = 0; i < spec["ports"].size(); ++i) {
        Draft& port = spec["ports"].at(i);
        if (had.contains(port["nodePort"].integer())) port.Remove("nodePort");
      }
    }
  } else {
    std::map<std::pair<std::int64_t, std::string_view>, std::int64_t> had;
    for (Value each : old["ports"].elements()) {
      if (const std::int64_t number = each["nodePort"].integer(); number != 0) {
        had[{each["port"].integer(), each["protocol"].str()}] = number;
      }
    }
    for (std::size_t i = 0; spec["ports"].is_array() && i < spec["ports"].size(); ++i) {
      Draft& port = spec["ports"].at(i);
      if (!port.is_object() || port["nodePort"].integer() != 0) continue;
      const auto kept = had.find({port["port"].integer(), port["protocol"].str()});
      if (kept != had.end()) port["nodePort"] = kept->second;
    }
  }
  Allocate(object, context);
}

std::set<std::string> ServiceStrategy::HeldBy(Value service) {
  std::set<std::string> held;
  const Value spec = service["spec"];
  const std::string_view type = spec["type"].str();
  if (type == "ExternalName") return held;
  ForEachAddress(spec, [&](std::string_view each) {
    if (!each.empty() && each != "None") held.insert(StrCat("addresses/", each));
  });
  if (!IsExposed(type)) return held;
  const auto hold = [&](std::string_view protocol, std::int64_t port) {
    if (port != 0) held.insert(StrCat("node-ports/", protocol, "/", port));
  };
  for (Value port : spec["ports"].elements()) {
    hold(port["protocol"].str("TCP"), port["nodePort"].integer());
  }
  for (const std::string_view protocol : NodePorts::kProtocols) {
    hold(protocol, spec["healthCheckNodePort"].integer());
  }
  return held;
}

api::Problems ServiceStrategy::CheckName(const api::KindSchema&, std::string_view name,
                                         bool prefix) const {
  return LabelNameProblems(name, prefix);
}

FieldErrors ServiceStrategy::Validate(Value object, const StrategyContext& context) const {
  return Check(object, Value(), context);
}

FieldErrors ServiceStrategy::ValidateUpdate(Value object, Value before,
                                            std::string_view subresource,
                                            const StrategyContext& context) const {
  if (subresource == "status") return ValidateServiceStatus(object);
  FieldErrors errors = Check(object, before, context);
  const Value now = object["spec"];
  const Value old = before["spec"];
  const bool both_have = now["type"].str() != "ExternalName" &&
                         old["type"].str() != "ExternalName" && !old["clusterIP"].str().empty();
  if (both_have && !IsServersOwn(object) && now["clusterIP"].str() != old["clusterIP"].str()) {
    errors.push_back(Invalid("spec.clusterIPs[0]", now["clusterIPs"], "may not change once set"));
  }
  return errors;
}

}  // namespace drakkar::apiserver
