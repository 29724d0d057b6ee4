#include "apiserver/aggregation/local_services.h"

#include <algorithm>
#include <iterator>

#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

struct Row {
  std::string_view group;
  std::string_view version;
  ServicePriority priority;
};

// As in Kubernetes: clients that look for a short name take the first group that has it.
constexpr Row kRows[] = {
    {"", "v1", {18000, 1}},
    {"apps", "v1", {17800, 15}},
    {"events.k8s.io", "v1", {17750, 15}},
    {"authentication.k8s.io", "v1", {17700, 15}},
    {"authorization.k8s.io", "v1", {17600, 15}},
    {"autoscaling", "v1", {17500, 15}},
    {"autoscaling", "v2", {17500, 30}},
    {"batch", "v1", {17400, 15}},
    {"certificates.k8s.io", "v1", {17300, 15}},
    {"networking.k8s.io", "v1", {17200, 15}},
    {"policy", "v1", {17100, 15}},
    {"rbac.authorization.k8s.io", "v1", {17000, 15}},
    {"storage.k8s.io", "v1", {16800, 15}},
    {"apiextensions.k8s.io", "v1", {16700, 15}},
    {"admissionregistration.k8s.io", "v1", {16700, 15}},
    {"admissionregistration.k8s.io", "v1beta1", {16700, 12}},
    {"scheduling.k8s.io", "v1", {16600, 15}},
    {"scheduling.k8s.io", "v1beta1", {16600, 9}},
    {"coordination.k8s.io", "v1", {16500, 15}},
    {"node.k8s.io", "v1", {16300, 15}},
    {"discovery.k8s.io", "v1", {16200, 15}},
    {"resource.k8s.io", "v1", {16200, 21}},
    {"resource.k8s.io", "v1beta2", {16200, 15}},
    {"resource.k8s.io", "v1beta1", {16200, 9}},
    {"resource.k8s.io", "v1alpha3", {16200, 1}},
    {"flowcontrol.apiserver.k8s.io", "v1", {16100, 21}},
    {"storagemigration.k8s.io", "v1", {15800, 15}},
};
constexpr ServicePriority kCustom = {1000, 100};
// There is no APIService for the group of APIServices. It comes before all others.
constexpr ServicePriority kOwn = {20001, 15};

}  // namespace

std::string ApiServiceName(std::string_view group, std::string_view version) {
  return StrCat(version, ".", group);
}

ServicePriority PriorityOf(std::string_view group, std::string_view version) {
  if (group == kRegistrationGroup) return kOwn;
  const auto* const found = std::ranges::find_if(
      kRows, [&](const Row& row) { return row.group == group && row.version == version; });
  return found == std::end(kRows) ? kCustom : found->priority;
}

api::TreePtr LocalApiService(const ServedVersion& served, std::string_view managed) {
  const ServicePriority priority = PriorityOf(served.group, served.version);
  api::Draft made({{"apiVersion", "apiregistration.k8s.io/v1"},
                   {"kind", "APIService"},
                   {"metadata",
                    {{"name", ApiServiceName(served.group, served.version)},
                     {"labels", api::Draft::Map({{kAutomanagedLabel, managed}})}}},
                   {"spec",
                    {{"version", served.version},
                     {"groupPriorityMinimum", priority.group},
                     {"versionPriority", priority.version}}}});
  if (!served.group.empty()) made["spec"]["group"] = served.group;
  return made.Freeze();
}

bool IsAutomanaged(api::Value api_service) {
  const std::string_view managed = api_service["metadata"]["labels"].Entry(kAutomanagedLabel).str();
  return managed == kManagedOnStart || managed == kManagedAlways;
}

}  // namespace drakkar::apiserver
