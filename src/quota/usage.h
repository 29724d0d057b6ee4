#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/meta/object.h"
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

// The resources whose objects count towards `name`, a key of spec.hard: "pods", "requests.cpu",
// "count/deployments.apps", "gpu.deviceclass.resource.k8s.io/devices". Towards extended resources
// both pods and claims do.
std::vector<ResourceName> CountedResources(std::string_view name);

// What the usage of a claim depends on. Without it, claims do not count towards extended resources.
struct Surroundings {
  WallTime now;
  std::function<api::ObjectPtr(const std::string& name)> find_class = {};  // a DeviceClass
  std::function<api::ObjectPtr(const std::string& key)> find_pod = {};
  std::function<void(std::string_view ns, const std::function<void(const api::Object&)>& each)>
      visit_claims = {};
};

// The keys of spec.hard that an object counts towards. A pod that has ended counts only towards
// "count/pods". A claim counts towards the extended resources of its classes as well, except for
// what the pod has already requested that the scheduler created it for.
Amounts UsageOf(std::string_view group, std::string_view plural, api::Value object,
                const Surroundings& around);

// Whether the quota's scopes include the object. `quota` is the ResourceQuota.
bool IsInScope(api::Value quota, std::string_view group, std::string_view plural,
               api::Value object);

// The resources of `hard` that the pod's containers must specify, because the quota limits them,
// but do not: "must specify limits.cpu for: a,b; memory for: a". Empty if nothing is missing.
std::string MissingResources(api::Value hard, api::Value pod_spec);

// "cpu=1,pods=2"
std::string Format(const Amounts& amounts);

}  // namespace drakkar::quota
