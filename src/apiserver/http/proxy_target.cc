#include "apiserver/http/proxy_target.h"

#include <vector>

#include "api/scheme/scheme.h"
#include "apiserver/rest/core.h"
#include "apiserver/webhook/endpoint.h"
#include "base/text/text.h"
#include "net/socket/address_kind.h"

namespace drakkar::apiserver {
namespace {

using Address = SubresourceProxy::Address;

std::optional<std::uint16_t> ParsePort(std::string_view text) {
  const std::optional<std::int64_t> port = ParseInt64(text);
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(*port);
}

template <typename Visit>
void ForEachPort(api::Value pod, Visit visit) {
  // Sidecars, which are init containers, serve ports too.
  for (api::Value container : pod["spec"]["containers"].elements()) {
    for (api::Value port : container["ports"].elements()) visit(port);
  }
  for (api::Value container : pod["spec"]["initContainers"].elements()) {
    for (api::Value port : container["ports"].elements()) visit(port);
  }
}

std::string PlainAddress(std::string_view ip) {
  return net::PlainAddress(std::string(ip));
}

bool HasAddress(api::Value pod, std::string_view ip) {
  const std::string wanted = PlainAddress(ip);
  for (api::Value each : pod["status"]["podIPs"].elements()) {
    if (PlainAddress(each["ip"].str()) == wanted) return true;
  }
  return PlainAddress(pod["status"]["podIP"].str()) == wanted;
}

// `wanted` is plain.
bool IsAt(api::Value node, std::string_view wanted) {
  for (api::Value each : node["status"]["addresses"].elements()) {
    const std::string_view address = each["address"].str();
    if (address == wanted) return true;
    // Only IPv6 has several forms. There may be thousands of nodes.
    if (address.find(':') != address.npos && PlainAddress(address) == wanted) return true;
  }
  return false;
}

// A node that has this address, other than the one with the pod; null if there is none.
api::ObjectPtr FindOtherNodeAt(const Core& core, std::string_view ip, std::string_view own) {
  const WatchCache* nodes = core.FindCache("", "nodes");
  if (nodes == nullptr) return nullptr;
  const std::string wanted = PlainAddress(ip);
  const api::ObjectPtr here = own.empty() ? nullptr : core.Find("", "nodes", std::string(own));
  if (here != nullptr && IsAt(here->root(), wanted)) return nullptr;
  for (const auto& [key, node] : nodes->objects()) {
    if (node->name() != own && IsAt(node->root(), wanted)) return node;
  }
  return nullptr;
}

// `address` has everything but is_declared_on_host. What a pod says about itself comes from its
// node, which may want to be led to other machines.
std::optional<Failure> Take(const Core& core, api::Value pod, Address address,
                            SubresourceProxy::Target& target) {
  if (net::KindOfAddress(address.ip) != net::AddressKind::kOther ||
      net::IsMetadataService(address.ip)) {
    return api::StatusBadRequest("address not allowed");
  }
  bool declared = false;
  ForEachPort(pod, [&](api::Value port) {
    declared = declared || port["containerPort"].integer() == address.port;
  });
  address.is_declared_on_host = declared && pod["spec"]["hostNetwork"].boolean();
  if (const api::ObjectPtr other = FindOtherNodeAt(core, address.ip, pod["spec"]["nodeName"].str());
      other != nullptr) {
    return api::StatusBadRequest(StrCat("address not allowed: it is that of node ",
                                        Quote(other->name()), ", where the pod is not"));
  }
  target.address = std::move(address);
  return std::nullopt;
}

std::optional<Failure> FindPod(const Core& core, const RequestInfo& info, const ProxyName& asked,
                               SubresourceProxy::Target& target) {
  const api::ObjectPtr pod = core.Find("", "pods", StrCat(info.namespace_, "/", asked.name));
  if (pod == nullptr) return NotFoundFailure(*info.kind, asked.name);
  Address address;
  address.scheme = asked.scheme.empty() ? "http" : asked.scheme;
  std::optional<std::int64_t> port;
  if (asked.port.empty()) {
    ForEachPort(pod->root(), [&](api::Value each) {
      if (!port) port = each["containerPort"].integer();
    });
    if (!port) port = address.scheme == "https" ? 443 : 80;
  } else if (const std::optional<std::uint16_t> number = ParsePort(asked.port)) {
    port = *number;
  } else {
    ForEachPort(pod->root(), [&](api::Value each) {
      if (!port && each["name"].str() == asked.port) port = each["containerPort"].integer();
    });
    if (!port) {
      return api::StatusBadRequest(
          StrCat("pod ", Quote(asked.name), " has no port ", Quote(asked.port)));
    }
  }
  address.port = static_cast<std::uint16_t>(*port);
  address.ip = pod->root()["status"]["podIP"].str();
  if (address.ip.empty()) {
    return api::StatusBadRequest(StrCat("pod ", Quote(asked.name), " does not have an address"));
  }
  return Take(core, pod->root(), std::move(address), target);
}

std::optional<Failure> FindService(const Core& core, const RequestInfo& info,
                                   const ProxyName& asked, Random& random,
                                   SubresourceProxy::Target& target) {
  const api::ObjectPtr service =
      core.Find("", "services", StrCat(info.namespace_, "/", asked.name));
  if (service == nullptr) return NotFoundFailure(*info.kind, asked.name);
  std::optional<std::string> port_name = asked.port;
  if (const std::optional<std::int64_t> number = ParseInt64(asked.port)) {
    port_name.reset();
    for (api::Value each : service->root()["spec"]["ports"].elements()) {
      if (!port_name && each["port"].integer() == *number) port_name = each["name"].str();
    }
    if (!port_name) {
      return api::StatusServiceUnavailable(
          StrCat("no service port ", *number, " found for service ", Quote(asked.name)));
    }
  }
  const std::vector<ServiceEndpoint> endpoints =
      FindServiceEndpoints(core, info.namespace_, asked.name, *port_name);
  const std::size_t start = endpoints.empty() ? 0 : random.Below(endpoints.size());
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    const ServiceEndpoint& each = endpoints[(start + i) % endpoints.size()];
    // Whoever may write Endpoints must not lead us anywhere but to pods, and to no others than
    // those of the namespace.
    const bool is_ours = each.pod.starts_with(StrCat(info.namespace_, "/"));
    const api::ObjectPtr pod = is_ours ? core.Find("", "pods", each.pod) : nullptr;
    if (pod == nullptr || !HasAddress(pod->root(), each.ip)) continue;
    if (each.port < 1 || each.port > 65535) continue;
    return Take(core, pod->root(),
                {asked.scheme.empty() ? "http" : asked.scheme, each.ip,
                 static_cast<std::uint16_t>(each.port)},
                target);
  }
  return api::StatusServiceUnavailable(
      StrCat("no endpoints available for service ", Quote(info.name)));
}

}  // namespace

std::optional<ProxyName> ParseProxyName(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, ':');
  ProxyName name;
  switch (parts.size()) {
    case 1:
      name.name = parts[0];
      break;
    case 2:
      name.name = parts[0];
      name.port = parts[1];
      break;
    case 3:
      name.scheme = parts[0];
      name.name = parts[1];
      name.port = parts[2];
      break;
    default:
      return std::nullopt;
  }
  if (name.name.empty()) return std::nullopt;
  if (!name.scheme.empty() && name.scheme != "http" && name.scheme != "https") return std::nullopt;
  return name;
}

std::optional<Failure> FindProxyTarget(const Core& core, const RequestInfo& info, Random& random,
                                       SubresourceProxy::Target& target) {
  const std::optional<ProxyName> asked = ParseProxyName(info.name);
  if (!asked) {
    const std::string_view what = info.resource == "nodes"      ? "node"
                                  : info.resource == "services" ? "service"
                                                                : "pod";
    return api::StatusBadRequest(StrCat("invalid ", what, " request ", Quote(info.name)));
  }
  if (info.resource == "pods") return FindPod(core, info, *asked, target);
  if (info.resource == "services") return FindService(core, info, *asked, random, target);
  target.node = core.Find("", "nodes", asked->name);
  return std::nullopt;
}

}  // namespace drakkar::apiserver
