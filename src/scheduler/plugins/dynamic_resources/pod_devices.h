#pragma once

#include <string>
#include <vector>

#include "allocator/allocator.h"
#include "scheduler/cache/claim_cache.h"
#include "scheduler/cache/node_set.h"
#include "scheduler/framework/plugin.h"

namespace drakkar::scheduler {

// A claim of the pod that is being placed.
struct ClaimItem {
  std::string key;  // namespace/name
  std::string uid;
  bool to_allocate = false;
  bool unavailable = false;   // allocated, but not usable on some node
  AllocationPtr chosen = {};  // set by Reserve
};

// What DynamicResources knows about a pod during one cycle.
struct PodDevices final : PluginState {
  std::vector<ClaimItem> items;

  allocator::Problem problem;  // the claims to allocate, in their order
  bool has_problem = false;
  bool avoids_failed = false;  // devices that failed for the pod are excluded
  NodeSet unavailable;         // nodes on which an allocated claim cannot be used

  MonotonicTime pre_bind_started{};
  MonotonicTime wait_started{};
  bool has_conditions = false;  // some device has binding conditions
  bool timed_out = false;
  bool cancelled = false;   // the pod was deleted
  bool claim_gone = false;  // a claim was deleted or is being deleted
  std::string node_lost;    // why the pod can no longer go to its node
};

}  // namespace drakkar::scheduler
