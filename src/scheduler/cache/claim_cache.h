#pragma once

#include <functional>
#include <memory>
#include <optional>
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
  std::string key;                            // namespace/name
  api::ObjectPtr observed;                    // what the watch delivered last
  api::ObjectPtr latest;                      // that, or the newer answer to a write of ours
  std::shared_ptr<const device::Claim> spec;  // null if it cannot be read
  AllocationPtr allocation;                   // of `latest`; null if there is none
  std::int64_t allocation_version = 0;        // the claim's when the allocation was first seen
  std::string spec_problem;                   // why spec cannot be read
  std::string problem;                        // that, or why the allocation cannot be read
  // Decided on but not in the API yet, and for which pod.
  AllocationPtr pending;
  std::string pending_pod;

  // What keeps devices from others: the allocation or the pending one.
  AllocationPtr counted;
  // Since when the conditions of this allocation have been waited for, once somebody did.
  std::optional<MonotonicTime> wait_began;
  // We are taking the allocation back, and what becomes of it is open: nobody may build on it.
  bool is_being_released = false;
  bool IsReservedFor(std::string_view pod_uid) const;
};

// The claims, ahead of the watch by our own writes, and which devices they hold.
//
// An object from the watch replaces the latest only if its version is higher; Assume takes the
// answer to a write, also only if it is not older. Pending allocations count as held until they are
// cleared; an allocation that appears in the API takes their place without a gap. Results that hold
// the same devices are not counted anew, so the allocator sees no change.
//
// Lives on the scheduler's loop; as many entries as there are claims.
class ClaimCache {
 public:
  // Told of every change of the latest version; null: it was not, or is not, there.
  using ChangeHandler = std::function<void(const std::string& key, const api::ObjectPtr& before,
                                           const api::ObjectPtr& after)>;

  explicit ClaimCache(device::AllocatedState& allocated) : allocated_(allocated) {}
  void SetChangeHandler(ChangeHandler handler) { handler_ = std::move(handler); }

  // From the watch.
  void Observe(const api::ObjectPtr& claim);
  void Remove(const api::ObjectPtr& claim);

  // The answer to a write of ours. Fails if the claim is gone or a newer version is known.
  Result<void> Assume(const api::ObjectPtr& claim);

  // False if the claim is gone, allocated, or pending for another pod.
  bool SetPending(const std::string& key, AllocationPtr allocation, const std::string& pod_uid);
  // Nothing happens unless it is pending for this pod. True if devices became free by it.
  bool ClearPending(const std::string& key, const std::string& pod_uid);
  // The first word counts, until the claim is allocated anew.
  void NoteWait(const std::string& key, MonotonicTime began);
  // Nothing happens if there is no claim of this name and uid.
  void SetBeingReleased(const std::string& key, std::string_view uid, bool value);

  // The name of a claim that had one of the same devices before this one, as far as can be seen
  // from here: another scheduler was quicker. Empty if there is none; costs nothing as long as no
  // device is held twice.
  std::string FindContender(const CachedClaim& claim) const;

  // Null if there is none.
  const CachedClaim* Find(const std::string& key) const;
  std::size_t size() const { return claims_.size(); }

 private:
  void SetLatest(CachedClaim& claim, const api::ObjectPtr& object);
  void Recount(CachedClaim& claim);

  device::AllocatedState& allocated_;
  ChangeHandler handler_;
  std::unordered_map<std::string, CachedClaim> claims_;  // by key; looked up only
};

// Whether two allocations hold the same devices and shares.
bool HoldSameDevices(const device::AllocationResult& a, const device::AllocationResult& b);

}  // namespace drakkar::scheduler
