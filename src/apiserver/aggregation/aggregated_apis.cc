#include "apiserver/aggregation/aggregated_apis.h"

#include <map>
#include <optional>

#include "api/tree/draft.h"
#include "base/hash/base64.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::Value;

// Limits for what one server reports about itself; the rest is dropped.
constexpr std::size_t kMaxResources = 2'000;

Draft ResponseKind(Value entry, std::string_view group, std::string_view version) {
  const std::string_view own_version = entry["version"].str();
  return Draft({{"group", own_version.empty() ? group : entry["group"].str()},
                {"version", own_version.empty() ? version : own_version},
                {"kind", entry["kind"].str()}});
}

void CopyList(Value from, api::FieldName field, Draft& to) {
  if (!from[field].empty()) to[field] = Draft(from[field]);
}

}  // namespace

std::shared_ptr<AggregatedApi> ReadApiService(Value object) {
  const Value spec = object["spec"];
  const Value service = spec["service"];
  if (!service.is_object()) return nullptr;
  auto made = std::make_shared<AggregatedApi>();
  made->name = object["metadata"]["name"].str();
  made->group = spec["group"].str();
  made->version = spec["version"].str();
  made->group_priority = static_cast<int>(spec["groupPriorityMinimum"].integer());
  made->version_priority = static_cast<int>(spec["versionPriority"].integer());
  made->service_namespace = service["namespace"].str();
  made->service_name = service["name"].str();
  made->port = service["port"].integer(443);
  made->insecure = spec["insecureSkipTLSVerify"].boolean();
  const Result<std::string> pem = Base64Decode(spec["caBundle"].str());
  if (pem.ok()) {
    made->ca_pem = *pem;
  } else {
    made->error = StrCat("caBundle: ", pem.error().message);
  }
  for (const Value condition : object["status"]["conditions"].elements()) {
    if (condition["type"].str() == "Available") {
      made->is_available = condition["status"].str() == "True";
    }
  }
  return made;
}

api::TreePtr ResourcesOfList(Value list, std::string_view group, std::string_view version) {
  if (list["kind"].str() != "APIResourceList" || !list["resources"].is_array()) return nullptr;
  std::vector<Draft> resources;
  std::map<std::string_view, std::size_t> places;
  // A subresource may come before its resource.
  for (const bool subresources : {false, true}) {
    for (const Value entry : list["resources"].elements()) {
      const std::string_view name = entry["name"].str();
      const std::size_t slash = name.find('/');
      if ((slash != std::string_view::npos) != subresources) continue;
      if (!subresources) {
        if (resources.size() >= kMaxResources || !places.emplace(name, resources.size()).second) {
          continue;
        }
        Draft made({{"resource", name},
                    {"responseKind", ResponseKind(entry, group, version)},
                    {"scope", entry["namespaced"].boolean() ? "Namespaced" : "Cluster"},
                    {"singularResource", entry["singularName"].str()}});
        CopyList(entry, "shortNames", made);
        CopyList(entry, "categories", made);
        CopyList(entry, "verbs", made);
        resources.push_back(std::move(made));
        continue;
      }
      const auto parent = places.find(name.substr(0, slash));
      if (parent == places.end()) continue;
      Draft made({{"subresource", name.substr(slash + 1)},
                  {"responseKind", ResponseKind(entry, group, version)}});
      CopyList(entry, "verbs", made);
      resources[parent->second]["subresources"].Append(std::move(made));
    }
  }
  return Draft::Array(std::move(resources)).Freeze();
}

AggregatedApiPtr AggregatedApis::Find(std::string_view group, std::string_view version) const {
  if (by_version_.empty()) return nullptr;
  const auto found = by_version_.find(std::pair(std::string(group), std::string(version)));
  return found == by_version_.end() ? nullptr : found->second;
}

AggregatedApiPtr AggregatedApis::FindByPath(std::string_view path) const {
  constexpr std::string_view kRoot = "/apis/";
  if (by_version_.empty() || !path.starts_with(kRoot)) return nullptr;
  path.remove_prefix(kRoot.size());
  const std::size_t end_of_group = path.find('/');
  if (end_of_group == std::string_view::npos) return nullptr;
  const std::string_view group = path.substr(0, end_of_group);
  path.remove_prefix(end_of_group + 1);
  return Find(group, path.substr(0, path.find('/')));
}

}  // namespace drakkar::apiserver
