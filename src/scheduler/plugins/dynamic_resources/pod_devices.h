#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "allocator/allocator.h"
#include "claims/claim.h"
#include "device/extended_resources.h"
#include "scheduler/cache/claim_cache.h"
#include "scheduler/cache/node_set.h"
#include "scheduler/framework/plugin.h"

namespace drakkar::scheduler {

// A claim of the pod that is being placed.
struct ClaimItem {
  std::string key;  // namespace/name; empty for extended resources until the claim is created
  std::string uid;
  bool to_allocate = false;
  claims::Consumer consumer;  // whom it is reserved for: the pod, or its PodGroup
  bool is_extended = false;   // the claim for extended resources (KEP-5004); added by Reserve
  bool unavailable = false;   // allocated, but not usable on some node
  AllocationPtr chosen = {};  // set by Reserve
};

// What DynamicResources knows about a pod during one cycle.
struct PodDevices final : PluginState {
  std::vector<ClaimItem> items;
  std::vector<std::shared_ptr<const device::Claim>> specs;  // claims to allocate, in their order

  // The pod's extended resources that device classes provide, and the classes. Only nodes that do
  // not offer a resource themselves need devices for it.
  std::map<std::string, std::string, std::less<>> extended;
  // The claim of an earlier attempt for them. It has to be deleted first.
  std::string leftover;

  // What to allocate on some of the nodes.
  struct Variant {
    std::shared_ptr<const device::ExtendedResources> extended;  // null: none
    bool has_problem = false;                                   // false: nothing to allocate
    allocator::Problem problem;  // `specs`, followed by the claim for extended resources
    NodeSet nodes;               // that the last search was for
  };
  // By which of `extended` need devices: one character each, '1' if so.
  std::map<std::string, Variant, std::less<>> variants;
  bool has_problem = false;                                          // something may be allocated
  std::shared_ptr<const device::ExtendedResources> chosen_extended;  // set by Reserve; may be null

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
