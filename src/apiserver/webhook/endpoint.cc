#include "apiserver/webhook/endpoint.h"

#include "apiserver/rest/core.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kServiceLabel = "kubernetes.io/service-name";

std::string HostPort(const ServiceEndpoint& endpoint) {
  const bool is_ipv6 = endpoint.ip.find(':') != std::string::npos;
  return StrCat(is_ipv6 ? "[" : "", endpoint.ip, is_ipv6 ? "]" : "", ":", endpoint.port);
}

std::string PodOf(api::Value reference) {
  if (reference["kind"].str() != "Pod") return {};
  return StrCat(reference["namespace"].str(), "/", reference["name"].str());
}

// Visits the objects of a namespace.
template <typename Visit>
void ForEachIn(const WatchCache& cache, std::string_view namespace_, Visit visit) {
  const std::string prefix = StrCat(namespace_, "/");
  for (auto each = cache.objects().lower_bound(prefix);
       each != cache.objects().end() && each->first.starts_with(prefix); ++each) {
    visit(each->second->root());
  }
}

void AddSlice(api::Value slice, std::string_view port_name, std::vector<ServiceEndpoint>& found) {
  for (api::Value port : slice["ports"].elements()) {
    if (port["name"].str() != port_name || !port["port"].has_value()) continue;
    for (api::Value endpoint : slice["endpoints"].elements()) {
      if (endpoint["conditions"]["ready"].boolean(true) && !endpoint["addresses"].empty()) {
        found.push_back({std::string(endpoint["addresses"].at(0).str()), port["port"].integer(),
                         PodOf(endpoint["targetRef"])});
      }
    }
    return;
  }
}

void AddSubsets(api::Value endpoints, std::string_view port_name,
                std::vector<ServiceEndpoint>& found) {
  for (api::Value subset : endpoints["subsets"].elements()) {
    for (api::Value port : subset["ports"].elements()) {
      if (port["name"].str() != port_name) continue;
      for (api::Value address : subset["addresses"].elements()) {
        found.push_back({std::string(address["ip"].str()), port["port"].integer(),
                         PodOf(address["targetRef"])});
      }
      break;
    }
  }
}

}  // namespace

std::vector<ServiceEndpoint> FindServiceEndpoints(const Core& core, std::string_view namespace_,
                                                  std::string_view name,
                                                  std::string_view port_name) {
  std::vector<ServiceEndpoint> found;
  bool has_slices = false;
  if (const WatchCache* slices = core.FindCache("discovery.k8s.io", "endpointslices")) {
    ForEachIn(*slices, namespace_, [&](api::Value slice) {
      if (slice["metadata"]["labels"].Entry(kServiceLabel).str() != name) return;
      has_slices = true;
      AddSlice(slice, port_name, found);
    });
  }
  if (!has_slices) {
    // Endpoints that someone wrote by hand, before a controller mirrors them.
    if (const api::ObjectPtr endpoints =
            core.Find("", "endpoints", StrCat(namespace_, "/", name))) {
      AddSubsets(endpoints->root(), port_name, found);
    }
  }
  return found;
}

Result<std::string> ResolveService(const Core& core, std::string_view namespace_,
                                   std::string_view name, std::int64_t port, Random& random) {
  const std::string key = StrCat(namespace_, "/", name);
  const api::ObjectPtr service = core.Find("", "services", key);
  if (service == nullptr) return NotFound(StrCat("service ", Quote(name), " not found"));
  const api::Value spec = service->root()["spec"];
  if (const std::string_view type = spec["type"].str(); type == "ExternalName") {
    return FailedPrecondition(StrCat("unsupported service type ", Quote(type)));
  }
  std::optional<std::string> port_name;
  for (api::Value each : spec["ports"].elements()) {
    if (each["port"].integer() == port && !port_name) port_name = each["name"].str();
  }
  if (!port_name) {
    return Unavailable(StrCat("no service port ", port, " found for service ", Quote(name)));
  }
  const std::vector<ServiceEndpoint> found =
      FindServiceEndpoints(core, namespace_, name, *port_name);
  if (found.empty()) {
    return Unavailable(StrCat("no endpoints available for service ", Quote(name)));
  }
  return HostPort(found[random.Below(found.size())]);
}

}  // namespace drakkar::apiserver
