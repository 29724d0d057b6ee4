#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::scheduler {

// Amounts of node resources, in the units the scheduler counts in. Resources beyond the three that
// nearly every pod names (huge pages, extended resources) are sparse.
struct ResourceAmounts {
  std::int64_t milli_cpu = 0;
  std::int64_t memory = 0;                                   // bytes
  std::int64_t ephemeral_storage = 0;                        // bytes
  std::vector<std::pair<std::string, std::int64_t>> others;  // sorted by name, no zeros

  std::int64_t Other(std::string_view name) const;
  void Set(std::string_view name, std::int64_t value);
  std::int64_t Get(std::string_view name) const;
  void Add(const ResourceAmounts& more);
  void Subtract(const ResourceAmounts& less);
  void RaiseTo(const ResourceAmounts& floor);  // the larger of both, for each resource
  bool IsZero() const;
  bool operator==(const ResourceAmounts&) const = default;
};

// A resource list ("cpu": "500m", ...) of an object. `pods` is left out. Amounts that cannot be
// read count as zero: the API server admits none.
ResourceAmounts ReadResourceList(api::Value list);
// One entry of such a list as the scheduler counts it: milli for cpu, whole units for the rest.
std::int64_t ReadAmount(std::string_view name, api::Value quantity);

// What a pod occupies on its node: the larger of its containers with sidecars and of the most
// demanding moment of its init phase, replaced by pod-level requests where there are any, plus
// overhead.
//
// `pod_status` is that of a bound pod, else absent: while a container is being resized it has the
// larger of what it asks for, what its node has granted and what is in effect; only the latter two
// if the node has said that the resize will never be possible.
ResourceAmounts PodRequests(api::Value pod_spec, api::Value pod_status = {});
// The same, with a little assumed for containers that name no cpu or memory, so that scoring does
// not pile them onto one node. Only cpu and memory are set.
ResourceAmounts PodRequestsForScoring(api::Value pod_spec, api::Value pod_status = {});
// Whether two versions of a status say the same as far as the above reads them.
bool HaveSameResources(api::Value pod_status, api::Value other_pod_status);

}  // namespace drakkar::scheduler
