#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::scheduler {

// Amounts of node resources in the scheduler's units. Resources other than the three common ones
// (huge pages, extended resources) are stored sparsely.
struct ResourceAmounts {
  std::int64_t milli_cpu = 0;
  std::int64_t memory = 0;                                   // bytes
  std::int64_t ephemeral_storage = 0;                        // bytes
  std::vector<std::pair<std::string, std::int64_t>> others;  // sorted by name, no zeros

  std::int64_t Other(std::string_view name) const;
  void Set(std::string_view name, std::int64_t value);
  std::int64_t Get(std::string_view name) const;
  void Add(const ResourceAmounts& more);
  void RaiseTo(const ResourceAmounts& floor);  // raises each resource to at least `floor`
  void LowerTo(std::int64_t ceiling);          // lowers each resource to at most `ceiling`
  bool operator==(const ResourceAmounts&) const = default;
};

// Reads a resource list ("cpu": "500m", ...) without `pods`. Amounts that cannot be parsed, which
// the API server does not admit, count as zero.
ResourceAmounts ReadResourceList(api::Value list);
// One entry of such a list in the scheduler's units: milli for cpu, whole units otherwise.
std::int64_t ReadAmount(std::string_view name, api::Value quantity);

// What a pod requests from its node: the requests of its containers and sidecars, or the peak of
// its init phase if that is larger. Pod-level requests override both if there are any. Overhead is
// added.
//
// `pod_status` is the status of a bound pod, otherwise absent. While a container is being resized,
// the largest of the desired, allocated and actual amounts counts. The desired amount does not
// count if the node has reported the resize as infeasible.
ResourceAmounts PodRequests(api::Value pod_spec, api::Value pod_status = {});
// The same with a minimum for containers without cpu or memory requests, so that scoring does not
// pile them onto one node. Only cpu and memory are set.
ResourceAmounts PodRequestsForScoring(api::Value pod_spec, api::Value pod_status = {});
// Whether two versions of a status are equal in the fields read above.
bool HaveSameResources(api::Value pod_status, api::Value other_pod_status);

}  // namespace drakkar::scheduler
