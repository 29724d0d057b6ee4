#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/meta/object.h"
#include "apiserver/watch/watch_cache.h"
#include "device/allocated_state.h"

namespace drakkar::apiserver {

// Keeps a device from being allocated twice, whoever allocates: several schedulers, one that was
// paused and acts on an old snapshot, or a user. An allocation is written by an update of the
// claim's status, and this decides whether it fits beside those of all other claims.
//
// - A device is held by one claim, or by any number of shares, whose consumed capacity fits.
// - What the held devices of a pool consume of its counters fits, and their compatibility groups
//   agree.
// - Admin access holds nothing.
//
// What the slices do not say (the device or its pool is unknown) is not held against anybody.
//
// Loop-bound to the core's loop. Follows the caches of claims and slices, inside the commit.
// Bounded by the allocated claims and the slices.
class DeviceArbiter {
 public:
  DeviceArbiter(const WatchCache& claims, const WatchCache& slices)
      : claims_(claims), slices_(slices) {}

  // The reason why `after` must not replace the stored `before` (both whole claims), worded for the
  // client; nullopt if it may.
  std::optional<std::string> FindConflict(api::Value before, api::Value after);

  // What decides about a change of a claim, for servers that share a store and whose caches may lag
  // behind one another: names that stand for a device, or for the counters of a pool. Every change
  // that allocates or frees one of them must be written together with it.
  struct Guard {
    std::string name;
    bool stays = false;  // held by some claim after the change
  };
  std::vector<Guard> GuardsOf(api::Value before, api::Value after);

 private:
  using Allocation = std::shared_ptr<const device::AllocationResult>;
  // The relevant properties of a device in its slice.
  struct KnownDevice {
    bool is_shareable = false;
    std::vector<device::Capacity> capacity;  // sorted by name
    std::vector<device::CounterConsumption> consumes;
  };
  struct KnownPool {
    std::map<std::string, KnownDevice, std::less<>> devices;
    // By counter set and counter.
    std::map<std::pair<std::string, std::string>, api::Quantity> counters;
  };

  void Follow();
  void ReadClaim(const std::string& key, const api::Object* claim);
  void ReadSlice(const api::ObjectPtr& slice, bool is_there);
  const KnownPool& Known(const device::PoolId& id);
  bool ConsumesCounters(const device::DeviceId& id);
  std::optional<std::string> FindExcess(const device::AllocationResult& wanted);
  std::optional<std::string> FindDeviceConflict(const device::DeviceResult& wanted);
  std::optional<std::string> FindCounterConflict(const device::PoolId& id,
                                                 const std::set<std::string>& added);

  const WatchCache& claims_;
  const WatchCache& slices_;
  device::AllocatedState held_;
  std::unordered_map<std::string, Allocation> allocations_;  // by the claim's key; never iterated
  std::map<device::PoolId, std::map<std::string, api::ObjectPtr>> slices_of_;  // by name
  std::map<device::PoolId, KnownPool> known_;  // read from the slices when they are needed
  std::unique_ptr<WatchCache::Watcher> claim_watch_;
  std::unique_ptr<WatchCache::Watcher> slice_watch_;
};

}  // namespace drakkar::apiserver
