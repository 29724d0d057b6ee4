#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "answers/cluster/snapshot.h"
#include "base/result/result.h"
#include "device/allocation.h"

namespace drakkar::answers {

// A pod or other object that a claim is reserved for.
struct Consumer {
  std::string namespace_;
  std::string name;
  std::string uid;
  bool is_pod = true;
  api::ObjectPtr pod;  // null: not a pod, or not in the snapshot
  std::string owner;   // the pod's controller: "Job/train"; empty: none

  std::string qualified_name() const;  // "namespace/name"
};

// An allocated claim.
struct ClaimUse {
  api::ObjectPtr claim;
  device::AllocationResult allocation;
  std::vector<Consumer> consumers;
  std::string since;     // when it was allocated, as precisely as the API knows; RFC 3339
  bool waiting = false;  // a binding condition of its devices is not True yet
};

using PodsByUid = std::unordered_map<std::string, api::ObjectPtr>;  // never iterated
PodsByUid IndexPods(const Objects& pods);

// `claim` must have an allocation. Fails if that cannot be read.
Result<ClaimUse> ReadClaimUse(const api::ObjectPtr& claim, const PodsByUid& pods);

// The controller of a pod: "Job/train". If a pod of a ReplicaSet has the label with the
// Deployment's hash, the Deployment. Empty if there is none.
std::string OwnerOf(const api::Object& object);

}  // namespace drakkar::answers
