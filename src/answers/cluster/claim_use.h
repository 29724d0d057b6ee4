#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "answers/cluster/snapshot.h"
#include "base/result/result.h"
#include "device/allocation.h"

namespace drakkar::answers {

// A pod, or something else, that a claim is reserved for.
struct Consumer {
  std::string namespace_;
  std::string name;
  std::string uid;
  bool is_pod = true;
  api::ObjectPtr pod;  // null: not in the snapshot
  std::string owner;   // what controls the pod: "Job/train"; empty: nothing

  std::string qualified_name() const;  // "namespace/name"
};

// A claim with devices.
struct ClaimUse {
  api::ObjectPtr claim;
  device::AllocationResult allocation;
  std::vector<Consumer> consumers;
  std::string since;     // when it got them, as exactly as the API says; RFC 3339
  bool waiting = false;  // some binding condition of its devices is not True yet
};

using PodsByUid = std::unordered_map<std::string, api::ObjectPtr>;  // looked up only
PodsByUid IndexPods(const Objects& pods);

// `claim` has an allocation; an error if that cannot be read.
Result<ClaimUse> ReadClaimUse(const api::ObjectPtr& claim, const PodsByUid& pods);

// What controls a pod: "Job/train". The Deployment for a pod of a ReplicaSet that carries its hash.
// Empty: nothing.
std::string OwnerOf(const api::Object& object);

}  // namespace drakkar::answers
