#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "api/meta/object.h"
#include "base/env/clock.h"
#include "base/result/result.h"
#include "device/allocated_state.h"
#include "device/allocation.h"
#include "device/claim.h"

namespace drakkar::scheduler {

using AllocationPtr = std::shared_ptr<const device::AllocationResult>;

// A claim as the scheduler sees it.
struct CachedClaim {
  std::string key;          // namespace/name
  api::ObjectPtr observed;  // the newest version from the watch
  api::ObjectPtr latest;    // `observed`, or the response to a newer write of ours
  std::shared_ptr<const device::Claim> spec;  // null if it cannot be read
  AllocationPtr allocation;                   // allocation of `latest`; null if there is none
  std::int64_t allocation_version = 0;        // the claim's version when it was first seen
  std::string spec_problem;                   // why spec cannot be read
  std::string problem;                        // spec_problem, or why the allocation cannot be read
  // An allocation that was decided but not written yet, and the pod it is for.
  AllocationPtr pending;
  std::string pending_pod;

  // The allocation that counts as holding devices: the written one, or the pending one.
  AllocationPtr counted;
  // When a pod first waited for the conditions of this allocation.
  std::optional<MonotonicTime> wait_began;
  // A release is in flight with an unknown outcome: nobody may use the allocation.
  bool is_being_released = false;
  bool IsReservedFor(std::string_view pod_uid) const;
};

// The claims and the devices they hold. Our own writes show up before the watch delivers them.
//
// An object from the watch replaces the latest version only if it is newer; Assume takes the
// response to a write unless it is older. Pending allocations count as held until they are cleared;
// an allocation that appears in the API replaces them atomically. Results that hold the same
// devices are not recounted, so the allocator sees no change.
//
// The claim for a pod's extended resources is created after its devices were chosen (KEP-5004).
// Until then they are held for the pod.
//
// Lives on the scheduler's loop; one entry per claim, and one hold per binding in flight.
class ClaimCache {
 public:
  // Called for every change of the latest version; `before` is null for a new claim, `after` for a
  // deleted one.
  using ChangeHandler = std::function<void(const std::string& key, const api::ObjectPtr& before,
                                           const api::ObjectPtr& after)>;

  explicit ClaimCache(device::AllocatedState& allocated) : allocated_(allocated) {}
  void SetChangeHandler(ChangeHandler handler) { handler_ = std::move(handler); }

  // Handles an object from the watch.
  void Observe(const api::ObjectPtr& claim);
  void Remove(const api::ObjectPtr& claim);

  // Handles the response to a write of ours. Fails if the claim is deleted or a newer version is
  // known.
  Result<void> Assume(const api::ObjectPtr& claim);

  // False if the claim is deleted, allocated, or pending for another pod.
  bool SetPending(const std::string& key, AllocationPtr allocation, const std::string& pod_uid);
  // A no-op unless the claim is pending for this pod. True if devices were freed.
  bool ClearPending(const std::string& key, const std::string& pod_uid);

  // Counts the devices of a claim that is yet to be created for the pod.
  void Hold(const std::string& pod_uid, AllocationPtr allocation);
  // Null if nothing is held.
  AllocationPtr FindHold(const std::string& pod_uid) const;
  // What is held becomes the pending allocation of the claim, which was created. False, and a
  // no-op, if the claim is gone, allocated or pending, or nothing is held.
  bool HandOver(const std::string& pod_uid, const std::string& key);
  // True if devices were freed.
  bool ReleaseHold(const std::string& pod_uid);

  // Only the first call counts, until the claim is reallocated.
  void NoteWait(const std::string& key, MonotonicTime began);
  // A no-op if there is no claim with this name and uid.
  void SetBeingReleased(const std::string& key, std::string_view uid, bool value);

  // The name of a claim to which another scheduler allocated one of the same devices first; empty
  // if there is none. Costs nothing as long as no device is held twice.
  std::string FindContender(const CachedClaim& claim) const;

  // Null if there is no such claim.
  const CachedClaim* Find(const std::string& key) const;
  // A claim that was created for the extended resources of the pod; null if there is none.
  const CachedClaim* FindExtended(const std::string& pod_uid) const;
  std::size_t size() const { return claims_.size(); }

 private:
  void IndexExtended(const api::Object& claim, bool exists);
  void SetLatest(CachedClaim& claim, const api::ObjectPtr& object);
  void Recount(CachedClaim& claim);

  device::AllocatedState& allocated_;
  ChangeHandler handler_;
  std::unordered_map<std::string, CachedClaim> claims_;                 // by key; never iterated
  std::map<std::string, std::set<std::string>, std::less<>> extended_;  // keys by the pod's uid
  std::map<std::string, AllocationPtr> holds_;                          // by the pod's uid
};

// Whether two allocations hold the same devices and shares.
bool HoldSameDevices(const device::AllocationResult& a, const device::AllocationResult& b);

}  // namespace drakkar::scheduler
