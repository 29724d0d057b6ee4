#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/tree/value.h"
#include "base/env/clock.h"
#include "quota/pod_resources.h"

namespace drakkar::quota {

// A resource by its API group and plural name.
struct ResourceName {
  std::string group;
  std::string plural;
  auto operator<=>(const ResourceName&) const = default;
};

// The resource whose objects count towards `name`, a key of spec.hard: "pods", "requests.cpu",
// "count/deployments.apps", "gpu.deviceclass.resource.k8s.io/devices". Nullopt if no object does.
std::optional<ResourceName> CountedResource(std::string_view name);

// The keys of spec.hard that an object counts towards. A pod that has ended counts only towards
// "count/pods".
Amounts UsageOf(std::string_view group, std::string_view plural, api::Value object, WallTime now);

// Whether the quota's scopes include the object. `quota` is the ResourceQuota.
bool IsInScope(api::Value quota, std::string_view group, std::string_view plural,
               api::Value object);

// The resources of `hard` that the pod's containers must specify, because the quota limits them,
// but do not: "must specify limits.cpu for: a,b; memory for: a". Empty if nothing is missing.
std::string MissingResources(api::Value hard, api::Value pod_spec);

// "cpu=1,pods=2"
std::string Format(const Amounts& amounts);

}  // namespace drakkar::quota
