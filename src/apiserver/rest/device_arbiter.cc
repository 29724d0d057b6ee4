#include "apiserver/rest/device_arbiter.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Value;
using device::AllocationResult;
using device::DeviceId;
using device::DeviceResult;
using device::PoolId;

api::Quantity QuantityOf(Value value) {
  const Result<api::Quantity> quantity = api::Quantity::Parse(value.str());
  return quantity.ok() ? *quantity : api::Quantity();
}

AllocationResult HeldBy(Value claim) {
  AllocationResult held;
  for (const Value result : claim["status"]["allocation"]["devices"]["results"].elements()) {
    if (result["adminAccess"].boolean()) continue;
    DeviceResult& one = held.results.emplace_back();
    one.id = {std::string(result["driver"].str()), std::string(result["pool"].str()),
              std::string(result["device"].str())};
    one.share_id = std::string(result["shareID"].str());
    for (const api::MemberView member : result["consumedCapacity"].members()) {
      one.consumed_capacity.push_back({std::string(member.name), QuantityOf(member.value)});
    }
  }
  return held;
}

bool SameAllocation(Value before, Value after) {
  return api::Equal(before["status"]["allocation"], after["status"]["allocation"]);
}

PoolId PoolOf(const api::Object& slice) {
  return {std::string(slice["spec"]["driver"].str()),
          std::string(slice["spec"]["pool"]["name"].str())};
}

std::string DeviceGuard(const DeviceId& id) {
  return StrCat("devices/", id.driver, "/", id.pool, "/", id.device);
}

std::string CounterGuard(const PoolId& id) {
  return StrCat("counters/", id.driver, "/", id.pool);
}

}  // namespace

void DeviceArbiter::Follow() {
  if (claim_watch_ == nullptr) {
    held_ = {};
    allocations_.clear();
    for (const auto& [key, claim] : claims_.objects()) ReadClaim(key, claim.get());
    claim_watch_ = claims_.StartFeed(
        std::make_shared<std::size_t>(0), storage::Mark::kApplied,
        {.on_changes =
             [this](const std::vector<Change>& changes) {
               for (const Change& change : changes) {
                 const bool gone = change.type == ChangeType::kDeleted;
                 if (!gone && change.previous != nullptr &&
                     SameAllocation(change.previous->root(), change.object->root())) {
                   continue;
                 }
                 ReadClaim(change.object->qualified_name(), gone ? nullptr : change.object.get());
               }
             },
         // The next query reads everything again.
         .on_closed = [this](const Error&) { claim_watch_.reset(); }});
  }
  if (slice_watch_ == nullptr) {
    slices_of_.clear();
    known_.clear();
    for (const auto& [key, slice] : slices_.objects()) ReadSlice(slice, true);
    slice_watch_ = slices_.StartFeed(std::make_shared<std::size_t>(0), storage::Mark::kApplied,
                                     {.on_changes =
                                          [this](const std::vector<Change>& changes) {
                                            for (const Change& change : changes) {
                                              if (change.previous != nullptr)
                                                ReadSlice(change.previous, false);
                                              if (change.type != ChangeType::kDeleted)
                                                ReadSlice(change.object, true);
                                            }
                                          },
                                      .on_closed = [this](const Error&) { slice_watch_.reset(); }});
  }
}

void DeviceArbiter::ReadClaim(const std::string& key, const api::Object* claim) {
  const auto before = allocations_.find(key);
  if (before != allocations_.end()) {
    held_.Remove(*before->second);
    allocations_.erase(before);
  }
  if (claim != nullptr) {
    AllocationResult now = HeldBy(claim->root());
    if (!now.results.empty()) {
      held_.Add(now);
      allocations_.emplace(key, std::make_shared<const AllocationResult>(std::move(now)));
    }
  }
  held_.TakeChanges();  // no caller reads them, and they must not pile up
}

void DeviceArbiter::ReadSlice(const api::ObjectPtr& slice, bool is_there) {
  const PoolId id = PoolOf(*slice);
  known_.erase(id);
  if (is_there) {
    slices_of_[id][std::string(slice->name())] = slice;
    return;
  }
  const auto pool = slices_of_.find(id);
  if (pool == slices_of_.end()) return;
  pool->second.erase(std::string(slice->name()));
  if (pool->second.empty()) slices_of_.erase(pool);
}

const DeviceArbiter::KnownPool& DeviceArbiter::Known(const PoolId& id) {
  const auto found = known_.find(id);
  if (found != known_.end()) return found->second;
  KnownPool& pool = known_[id];
  const auto slices = slices_of_.find(id);
  if (slices == slices_of_.end()) return pool;
  std::int64_t newest = 0;
  for (const auto& [name, slice] : slices->second) {
    newest = std::max(newest, (*slice)["spec"]["pool"]["generation"].integer());
  }
  for (const auto& [name, slice] : slices->second) {
    const Value spec = (*slice)["spec"];
    if (spec["pool"]["generation"].integer() != newest) continue;
    for (const Value set : spec["sharedCounters"].elements()) {
      for (const api::MemberView counter : set["counters"].members()) {
        pool.counters[{std::string(set["name"].str()), std::string(counter.name)}] =
            QuantityOf(counter.value["value"]);
      }
    }
    for (const Value device : spec["devices"].elements()) {
      KnownDevice& known = pool.devices[std::string(device["name"].str())];
      known.is_shareable = device["allowMultipleAllocations"].boolean();
      if (known.is_shareable) {
        for (const api::MemberView capacity : device["capacity"].members()) {
          known.capacity.push_back(
              {std::string(capacity.name), QuantityOf(capacity.value["value"]), std::nullopt});
        }
      }
      for (const Value consumption : device["consumesCounters"].elements()) {
        device::CounterConsumption& one = known.consumes.emplace_back();
        one.counter_set = std::string(consumption["counterSet"].str());
        for (const api::MemberView counter : consumption["counters"].members()) {
          one.counters.push_back({std::string(counter.name), QuantityOf(counter.value["value"])});
        }
        for (const Value group : consumption["compatibilityGroups"].elements()) {
          one.compatibility_groups.emplace_back(group.str());
        }
      }
    }
  }
  return pool;
}

std::optional<std::string> DeviceArbiter::FindDeviceConflict(const DeviceResult& wanted) {
  const device::DeviceUse* use = held_.FindDevice(wanted.id);
  if (use == nullptr) return std::nullopt;
  if (use->exclusive > 0) {
    return StrCat("device ", wanted.id.ToString(), " is already allocated");
  }
  if (!use->IsShared()) return std::nullopt;
  if (wanted.share_id.empty()) {
    return StrCat("device ", wanted.id.ToString(), " is already shared by other claims");
  }
  if (use->shares.contains(wanted.share_id)) {
    return StrCat("share ", wanted.share_id, " of device ", wanted.id.ToString(),
                  " is already allocated");
  }
  const KnownPool& pool = Known(wanted.id.pool_id());
  const auto known = pool.devices.find(wanted.id.device);
  if (known == pool.devices.end()) return std::nullopt;
  if (!known->second.is_shareable) {
    return StrCat("device ", wanted.id.ToString(), " is in use and can no longer be shared");
  }
  for (const device::ConsumedCapacity& consumed : wanted.consumed_capacity) {
    const auto capacity =
        std::ranges::find(known->second.capacity, consumed.name, &device::Capacity::name);
    const auto others = use->consumed.find(consumed.name);
    if (capacity == known->second.capacity.end() || others == use->consumed.end()) continue;
    api::Quantity total = consumed.value;
    total.Add(others->second);
    if (total > capacity->value) {
      return StrCat("capacity ", consumed.name, " of device ", wanted.id.ToString(),
                    " is already consumed by other claims");
    }
  }
  return std::nullopt;
}

// The state once `added` devices of the pool are held.
std::optional<std::string> DeviceArbiter::FindCounterConflict(const PoolId& id,
                                                              const std::set<std::string>& added) {
  const KnownPool& pool = Known(id);
  const auto consumes = [&](const std::string& name) {
    const auto known = pool.devices.find(name);
    return known != pool.devices.end() && !known->second.consumes.empty();
  };
  if (std::ranges::none_of(added, consumes)) return std::nullopt;
  const device::PoolUse* use = held_.FindPool(id);
  if (use == nullptr) return std::nullopt;
  std::map<std::pair<std::string, std::string>, api::Quantity> taken;
  struct Groups {
    int members = 0;
    int without = 0;                  // members that name no group
    std::vector<std::string> in_all;  // of those that name some
  };
  std::map<std::string, Groups> groups;
  std::set<std::string> touched;  // counter sets of the added devices
  for (const auto& [name, held] : use->devices) {
    const auto known = pool.devices.find(name);
    if (known == pool.devices.end() || !held.IsUsed()) continue;
    for (const device::CounterConsumption& one : known->second.consumes) {
      if (added.contains(name)) touched.insert(one.counter_set);
      for (const device::Counter& counter : one.counters) {
        taken[{one.counter_set, counter.name}].Add(counter.value);
      }
      Groups& set = groups[one.counter_set];
      if (one.compatibility_groups.empty()) {
        ++set.without;
      } else if (set.members == set.without) {
        set.in_all = one.compatibility_groups;
      } else {
        std::erase_if(set.in_all, [&](const std::string& group) {
          return std::ranges::find(one.compatibility_groups, group) ==
                 one.compatibility_groups.end();
        });
      }
      ++set.members;
    }
  }
  for (const auto& [counter, amount] : taken) {
    const auto available = pool.counters.find(counter);
    if (!touched.contains(counter.first) || available == pool.counters.end()) continue;
    if (amount > available->second) {
      return StrCat("counter ", counter.first, "/", counter.second, " of pool ", id.ToString(),
                    " is already consumed by devices of other claims");
    }
  }
  for (const std::string& name : touched) {
    const Groups& set = groups[name];
    const bool mixed = set.without > 0 && set.without < set.members;
    if (mixed || (set.without < set.members && set.in_all.empty())) {
      return StrCat("compatibility groups of counter set ", name, " of pool ", id.ToString(),
                    " exclude the devices of other claims");
    }
  }
  return std::nullopt;
}

std::optional<std::string> DeviceArbiter::FindConflict(Value before, Value after) {
  if (!after["status"]["allocation"].has_value() || SameAllocation(before, after)) {
    return std::nullopt;
  }
  Follow();
  // The resulting state: without what the claim holds now, and with what it requests.
  const AllocationResult old = HeldBy(before);
  const AllocationResult wanted = HeldBy(after);
  held_.Remove(old);
  std::optional<std::string> conflict;
  for (const DeviceResult& result : wanted.results) {
    if ((conflict = FindDeviceConflict(result))) break;
  }
  const auto adds_up = [this](const DeviceResult& result) {
    return !result.share_id.empty() || ConsumesCounters(result.id);
  };
  if (!conflict && std::ranges::any_of(wanted.results, adds_up)) conflict = FindExcess(wanted);
  held_.Add(old);
  return conflict;
}

bool DeviceArbiter::ConsumesCounters(const DeviceId& id) {
  const KnownPool& pool = Known(id.pool_id());
  const auto known = pool.devices.find(id.device);
  return known != pool.devices.end() && !known->second.consumes.empty();
}

// What the claim's shares and counters amount to, together with those of other claims.
std::optional<std::string> DeviceArbiter::FindExcess(const AllocationResult& wanted) {
  AllocationResult taken;
  std::map<PoolId, std::set<std::string>> added;
  std::optional<std::string> conflict;
  for (const DeviceResult& result : wanted.results) {
    // Shares of one claim add up. That a claim names a device twice is accepted, as in Kubernetes.
    if (!result.share_id.empty() && (conflict = FindDeviceConflict(result))) break;
    AllocationResult one;
    one.results.push_back(result);
    held_.Add(one);
    taken.results.push_back(result);
    added[result.id.pool_id()].insert(result.id.device);
  }
  for (const auto& [pool, devices] : added) {
    if (conflict) break;
    conflict = FindCounterConflict(pool, devices);
  }
  held_.Remove(taken);
  return conflict;
}

std::vector<DeviceArbiter::Guard> DeviceArbiter::GuardsOf(Value before, Value after) {
  if (SameAllocation(before, after)) return {};
  Follow();
  const AllocationResult old = HeldBy(before);
  const AllocationResult wanted = HeldBy(after);
  held_.Remove(old);
  held_.Add(wanted);
  std::map<std::string, bool> guards;
  for (const AllocationResult* each : {&old, &wanted}) {
    for (const DeviceResult& result : each->results) {
      const device::DeviceUse* use = held_.FindDevice(result.id);
      guards[DeviceGuard(result.id)] = use != nullptr && use->IsUsed();
      const PoolId id = result.id.pool_id();
      const KnownPool& pool = Known(id);
      const auto known = pool.devices.find(result.id.device);
      if (known == pool.devices.end() || known->second.consumes.empty()) continue;
      guards[CounterGuard(id)] = held_.FindPool(id) != nullptr;
    }
  }
  held_.Remove(wanted);
  held_.Add(old);
  std::vector<Guard> out;
  for (const auto& [name, stays] : guards) out.push_back({name, stays});
  return out;
}

}  // namespace drakkar::apiserver
