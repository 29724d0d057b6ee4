#include "controllers/endpoints/planner.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "controllers/workload/adoption.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

namespace {

using api::Value;

constexpr std::string_view kHeadlessLabel = "service.kubernetes.io/headless";
constexpr std::string_view kEndpointsManager = "endpoints.kubernetes.io/managed-by";
constexpr std::string_view kOverCapacity = "endpoints.kubernetes.io/over-capacity";

const api::KindSchema& ServiceKind() {
  static const api::KindSchema* kind = api::FindKind("", "v1", "Service");
  return *kind;
}

// A port of the Service, resolved for one pod.
struct Port {
  std::string name;
  std::int64_t number = 0;
  std::string protocol;
  std::string app_protocol;
  auto operator<=>(const Port&) const = default;
};
using Ports = std::vector<Port>;

// Compares the objects pointed to; most pods of a Service share their ports.
struct ByContent {
  bool operator()(const Ports* a, const Ports* b) const { return a != b && *a < *b; }
};

// The ports of a Service, resolved for each of its pods. Pods with the same ports share one list,
// because a Service may have thousands of both.
class PortResolver {
 public:
  explicit PortResolver(const api::Object& service) {
    for (Value port : service["spec"]["ports"].elements()) {
      if (wanted_.size() == kMaxServicePorts) break;
      wanted_.push_back(port);
      has_names_ = has_names_ || port["targetPort"].is_string();
    }
  }

  // Ports that the pod does not have are left out. The result lives as long as the resolver.
  const Ports& For(const api::Object& pod) {
    if (!has_names_ && !known_.empty()) return *known_.begin();
    std::map<Name, std::int64_t> named;
    if (has_names_) named = NamedPorts(pod["spec"]);
    Ports ports;
    for (Value port : wanted_) {
      const std::string_view protocol = port["protocol"].str("TCP");
      const Value target = port["targetPort"];
      std::int64_t number = target.integer(port["port"].integer());
      if (target.is_string()) {
        const auto found = named.find({target.str(), protocol});
        number = found == named.end() ? 0 : found->second;
      }
      if (number == 0) continue;
      ports.push_back({std::string(port["name"].str()), number, std::string(protocol),
                       std::string(port["appProtocol"].str())});
    }
    std::ranges::sort(ports);
    return *known_.insert(std::move(ports)).first;
  }

 private:
  using Name = std::pair<std::string_view, std::string_view>;  // and protocol

  // The first port of each name.
  static std::map<Name, std::int64_t> NamedPorts(Value pod_spec) {
    std::map<Name, std::int64_t> named;
    for (const api::FieldName list : api::FieldNames{"containers", "initContainers"}) {
      for (Value container : pod_spec[list].elements()) {
        if (list.view() == "initContainers" && container["restartPolicy"].str() != "Always") {
          continue;
        }
        for (Value port : container["ports"].elements()) {
          named.try_emplace({port["name"].str(), port["protocol"].str("TCP")},
                            port["containerPort"].integer());
        }
      }
    }
    return named;
  }

  std::vector<Value> wanted_;
  bool has_names_ = false;
  std::set<Ports> known_;
};

struct Endpoint {
  const api::Object* pod = nullptr;
  std::string address;
  const Ports* ports = nullptr;
  bool ready = false;
  bool serving = false;
  bool terminating = false;
};

std::string_view AddressOf(const api::Object& pod, bool is_v6) {
  for (Value each : pod["status"]["podIPs"].elements()) {
    const std::string_view address = each["ip"].str();
    if ((address.find(':') != std::string_view::npos) == is_v6) return address;
  }
  const std::string_view only = pod["status"]["podIP"].str();
  return !only.empty() && (only.find(':') != std::string_view::npos) == is_v6 ? only
                                                                              : std::string_view();
}

bool IsV6(const api::Object& service) {
  return service["spec"]["ipFamilies"].at(0).str() == "IPv6";
}

std::vector<Endpoint> EndpointsOf(const ServiceState& state, PortResolver& resolver) {
  std::vector<Endpoint> endpoints;
  const Value spec = state.service["spec"];
  const bool all_ready = spec["publishNotReadyAddresses"].boolean();
  const bool headless = spec["clusterIP"].str() == "None";
  for (const api::ObjectPtr& pod : state.pods) {
    const std::string_view address = AddressOf(*pod, IsV6(state.service));
    if (address.empty() || IsTerminal(*pod)) continue;
    Endpoint endpoint{pod.get(), std::string(address), &resolver.For(*pod)};
    // Without a matching port the pod cannot be reached, except by the name of a headless Service.
    if (endpoint.ports->empty() && !(headless && spec["ports"].empty())) continue;
    endpoint.terminating = pod->is_being_deleted();
    endpoint.serving = IsReady(*pod);
    endpoint.ready = all_ready || (endpoint.serving && !endpoint.terminating);
    endpoints.push_back(std::move(endpoint));
  }
  return endpoints;
}

api::Draft TargetRef(const api::Object& pod) {
  return {
      {"kind", "Pod"}, {"namespace", pod.namespace_()}, {"name", pod.name()}, {"uid", pod.uid()}};
}

std::string_view HostnameOf(const ServiceState& state, const api::Object& pod) {
  const Value spec = pod["spec"];
  return spec["subdomain"].str() == state.service.name() ? spec["hostname"].str()
                                                         : std::string_view();
}

// Ports of slices always have a name, even an empty one.
enum class Naming { kAlways, kIfAny };

api::Draft DraftPorts(const Ports& ports, Naming naming) {
  api::Draft list = api::Draft::Array();
  for (const Port& port : ports) {
    api::Draft& each = list.Append(api::Draft::Object());
    if (naming == Naming::kAlways || !port.name.empty()) each["name"] = port.name;
    each["port"] = port.number;
    each["protocol"] = port.protocol;
    if (!port.app_protocol.empty()) each["appProtocol"] = port.app_protocol;
  }
  return list;
}

api::Draft LabelsOf(const ServiceState& state) {
  api::Draft labels = api::Draft::Object();
  for (const auto& [key, name, value] : state.service["metadata"]["labels"].members()) {
    if (name != kServiceNameLabel && name != kHeadlessLabel) labels.Entry(name) = value.str();
  }
  if (state.service["spec"]["clusterIP"].str() == "None") labels.Entry(kHeadlessLabel) = "";
  return labels;
}

api::Draft DraftEndpoint(const ServiceState& state, const Endpoint& endpoint) {
  api::Draft draft = api::Draft::Object();
  draft["addresses"].Append(endpoint.address);
  draft["conditions"] = api::Draft{{"ready", endpoint.ready},
                                   {"serving", endpoint.serving},
                                   {"terminating", endpoint.terminating}};
  const std::string_view host = HostnameOf(state, *endpoint.pod);
  if (!host.empty()) draft["hostname"] = host;
  draft["targetRef"] = TargetRef(*endpoint.pod);
  const std::string_view node = (*endpoint.pod)["spec"]["nodeName"].str();
  if (!node.empty()) draft["nodeName"] = node;
  const api::ObjectPtr found = state.find_node ? state.find_node(node) : nullptr;
  if (found != nullptr) {
    const std::string_view zone =
        (*found)["metadata"]["labels"].Entry("topology.kubernetes.io/zone").str();
    if (!zone.empty()) draft["zone"] = zone;
  }
  return draft;
}

// The slices with one set of ports.
class PortGroup {
 public:
  PortGroup(const ServiceState& state, const Ports& ports) : state_(state), ports_(ports) {}

  void Add(const Endpoint& endpoint) { wanted_[endpoint.address] = &endpoint; }
  void AddSlice(const api::ObjectPtr& slice) { slices_.push_back(slice); }

  void Plan(SlicePlan& plan) {
    std::vector<std::vector<const Endpoint*>> contents(slices_.size());
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      for (Value each : (*slices_[i])["endpoints"].elements()) {
        const auto found = wanted_.find(each["addresses"].at(0).str());
        if (found == wanted_.end()) continue;
        contents[i].push_back(found->second);
        wanted_.erase(found);
      }
    }
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      while (!wanted_.empty() && contents[i].size() < kMaxSliceEndpoints) {
        contents[i].push_back(wanted_.begin()->second);
        wanted_.erase(wanted_.begin());
      }
    }
    bool any = false;
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      // One empty slice is kept, so that the Service has one.
      const bool last = i + 1 == slices_.size() && !any && wanted_.empty();
      if (contents[i].empty() && !last) {
        plan.remove.push_back(slices_[i]);
        continue;
      }
      any = true;
      api::TreePtr body = Body(contents[i], slices_[i].get());
      if (body != nullptr) plan.update.push_back({slices_[i], std::move(body)});
    }
    while (!wanted_.empty() || !any) {
      std::vector<const Endpoint*> content;
      while (!wanted_.empty() && content.size() < kMaxSliceEndpoints) {
        content.push_back(wanted_.begin()->second);
        wanted_.erase(wanted_.begin());
      }
      any = true;
      plan.create.push_back(Body(content, nullptr));
    }
  }

 private:
  // Null if the slice has this content already.
  api::TreePtr Body(const std::vector<const Endpoint*>& content, const api::Object* slice) {
    api::Draft labels = LabelsOf(state_);
    labels.Entry(kServiceNameLabel) = state_.service.name();
    labels.Entry(kManagedByLabel) = kSliceManager;
    api::Draft endpoints = api::Draft::Array();
    for (const Endpoint* each : content) endpoints.Append(DraftEndpoint(state_, *each));
    api::Draft draft = slice == nullptr ? api::Draft::Object() : api::Draft(slice->tree());
    if (slice == nullptr) {
      draft["metadata"]["generateName"] = StrCat(state_.service.name(), "-");
      draft["metadata"]["namespace"] = state_.service.namespace_();
      draft["metadata"]["ownerReferences"].Append(
          ControllerReference(state_.service, ServiceKind()));
      draft["addressType"] = IsV6(state_.service) ? "IPv6" : "IPv4";
    }
    draft["metadata"]["labels"] = std::move(labels);
    draft["endpoints"] = std::move(endpoints);
    draft["ports"] = DraftPorts(ports_, Naming::kAlways);
    api::TreePtr made = draft.Freeze();
    if (slice != nullptr && api::Equal(made->root(), slice->root())) return nullptr;
    return made;
  }

  const ServiceState& state_;
  const Ports& ports_;
  std::map<std::string, const Endpoint*, std::less<>> wanted_;  // by address
  std::vector<api::ObjectPtr> slices_;
};

Ports ReadPorts(Value list) {
  Ports ports;
  for (Value port : list.elements()) {
    ports.push_back({std::string(port["name"].str()), port["port"].integer(),
                     std::string(port["protocol"].str("TCP")),
                     std::string(port["appProtocol"].str())});
  }
  std::ranges::sort(ports);
  return ports;
}

}  // namespace

bool SelectsPods(const api::Object& service) {
  return !service["spec"]["selector"].empty() && service["spec"]["type"].str() != "ExternalName" &&
         !service.is_being_deleted();
}

SlicePlan PlanSlices(const ServiceState& state, const std::vector<api::ObjectPtr>& slices) {
  SlicePlan plan;
  PortResolver resolver(state.service);
  const std::vector<Endpoint> endpoints = EndpointsOf(state, resolver);
  std::map<const Ports*, PortGroup, ByContent> groups;
  for (const Endpoint& endpoint : endpoints) {
    groups.try_emplace(endpoint.ports, state, *endpoint.ports).first->second.Add(endpoint);
  }
  // A Service without pods has a slice without endpoints.
  static const Ports kNone;
  if (groups.empty()) groups.try_emplace(&kNone, state, kNone);
  for (const api::ObjectPtr& slice : slices) {
    const Ports ports = ReadPorts((*slice)["ports"]);
    const auto found = groups.find(&ports);
    const std::string_view family = IsV6(state.service) ? "IPv6" : "IPv4";
    if (found == groups.end() || (*slice)["addressType"].str() != family) {
      plan.remove.push_back(slice);
    } else {
      found->second.AddSlice(slice);
    }
  }
  for (auto& [ports, group] : groups) group.Plan(plan);
  return plan;
}

api::TreePtr PlanEndpoints(const ServiceState& state, const api::Object* before) {
  // Addresses with the same ports share a subset.
  struct Subset {
    std::vector<const Endpoint*> ready, not_ready;
  };
  std::map<const Ports*, Subset, ByContent> subsets;
  PortResolver resolver(state.service);
  std::vector<Endpoint> endpoints = EndpointsOf(state, resolver);
  // A pod that is being deleted is not listed: clients of Endpoints cannot tell it apart.
  std::erase_if(endpoints, [&](const Endpoint& each) { return each.terminating && !each.ready; });
  std::ranges::sort(endpoints, {},
                    [](const Endpoint& each) { return std::tuple(!each.ready, each.address); });
  const bool too_many = endpoints.size() > kMaxEndpointAddresses;
  if (too_many) endpoints.resize(kMaxEndpointAddresses);
  for (const Endpoint& endpoint : endpoints) {
    Subset& subset = subsets[endpoint.ports];
    (endpoint.ready ? subset.ready : subset.not_ready).push_back(&endpoint);
  }
  const auto addresses = [&](const std::vector<const Endpoint*>& list) {
    api::Draft drafts = api::Draft::Array();
    for (const Endpoint* endpoint : list) {
      api::Draft& each = drafts.Append(api::Draft{{"ip", endpoint->address}});
      const std::string_view host = HostnameOf(state, *endpoint->pod);
      if (!host.empty()) each["hostname"] = host;
      const std::string_view node = (*endpoint->pod)["spec"]["nodeName"].str();
      if (!node.empty()) each["nodeName"] = node;
      each["targetRef"] = TargetRef(*endpoint->pod);
    }
    return drafts;
  };
  api::Draft draft = before == nullptr ? api::Draft::Object() : api::Draft(before->tree());
  api::Draft& metadata = draft["metadata"];
  metadata["name"] = state.service.name();
  metadata["namespace"] = state.service.namespace_();
  metadata["labels"] = LabelsOf(state);
  metadata["labels"].Entry(kEndpointsManager) = "endpoint-controller";
  if (too_many) {
    metadata["annotations"].Entry(kOverCapacity) = "truncated";
  } else if (api::Draft* annotations = metadata.Find("annotations")) {
    annotations->RemoveEntry(kOverCapacity);
    if (annotations->size() == 0) metadata.Remove("annotations");
  }
  api::Draft list = api::Draft::Array();
  for (const auto& [ports, subset] : subsets) {
    api::Draft& each = list.Append(api::Draft::Object());
    if (!subset.ready.empty()) each["addresses"] = addresses(subset.ready);
    if (!subset.not_ready.empty()) each["notReadyAddresses"] = addresses(subset.not_ready);
    if (!ports->empty()) each["ports"] = DraftPorts(*ports, Naming::kIfAny);
  }
  if (list.size() == 0) {
    draft.Remove("subsets");
  } else {
    draft["subsets"] = std::move(list);
  }
  api::TreePtr made = draft.Freeze();
  if (before != nullptr && api::Equal(made->root(), before->root())) return nullptr;
  return made;
}

}  // namespace drakkar::controllers
