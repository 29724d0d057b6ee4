#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "device/allocation.h"
#include "device/device_id.h"

namespace drakkar::device {

// How one device is held. It may be held in both ways if its slice changed in between.
struct DeviceUse {
  int exclusive = 0;             // allocations that do not share it
  std::set<std::string> shares;  // share ids
  // Consumed by all shares together. An entry stays until the last share is gone.
  std::map<std::string, api::Quantity, std::less<>> consumed;
  // Temporarily withheld from all claims, but not held: consumes no counters.
  int bars = 0;

  bool IsShared() const { return !shares.empty() || !consumed.empty(); }
  bool IsUsed() const { return exclusive > 0 || IsShared(); }
};

struct PoolUse {
  std::map<std::string, DeviceUse, std::less<>> devices;  // by name; only used or barred ones
};

// Which devices are held by claims, updated one claim at a time. Results with admin access hold
// nothing. A held device need not exist in any slice.
//
// Lives on the owner's loop. Bounded by the number of allocated and barred devices.
class AllocatedState {
 public:
  // Every Add must be balanced by a Remove with the same results.
  void Add(const AllocationResult& allocation);
  void Remove(const AllocationResult& allocation);

  void AddExclusive(const DeviceId& id);
  void RemoveExclusive(const DeviceId& id);
  // Every Bar must be balanced by an Unbar.
  void Bar(const DeviceId& id);
  void Unbar(const DeviceId& id);
  void AddShare(const DeviceId& id, std::string_view share_id);
  void RemoveShare(const DeviceId& id, std::string_view share_id);
  void AddConsumed(const DeviceId& id, const std::vector<ConsumedCapacity>& consumed);
  void RemoveConsumed(const DeviceId& id, const std::vector<ConsumedCapacity>& consumed);

  // Null if nothing of it is held.
  const PoolUse* FindPool(const PoolId& id) const;
  const DeviceUse* FindDevice(const DeviceId& id) const;
  const std::map<PoolId, PoolUse>& pools() const { return pools_; }
  // Number of devices held exclusively by more than one claim, because two schedulers raced.
  std::size_t contested() const { return contested_; }

  // Pools that changed since the last call, sorted. For a single consumer.
  std::vector<PoolId> TakeChanges();

 private:
  DeviceUse& Use(const DeviceId& id);
  void DropIfUnused(const DeviceId& id);

  std::map<PoolId, PoolUse> pools_;
  std::set<PoolId> changes_;
  std::size_t contested_ = 0;
};

}  // namespace drakkar::device
