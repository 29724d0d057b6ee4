#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "answers/cluster/claim_use.h"
#include "answers/cluster/snapshot.h"
#include "device/allocation.h"
#include "device/expression.h"
#include "device/slice.h"
#include "device/taint_rule.h"

namespace drakkar::answers {

// One result of an allocation.
struct Hold {
  const ClaimUse* claim = nullptr;
  const device::DeviceResult* result = nullptr;
};

struct CounterUse {
  std::string set;
  std::string name;
  api::Quantity total;
  api::Quantity used;
};

// The newest generation of a pool.
struct PoolEntry {
  device::PoolId id;
  std::int64_t generation = 0;
  std::int64_t expected_slices = 0;
  std::vector<std::shared_ptr<const device::Slice>> slices;  // by name
  std::string problem;  // why none of its devices can be used; empty if they can
  std::vector<CounterUse> counters;
};

struct DeviceEntry {
  device::DeviceId id;
  const PoolEntry* pool = nullptr;         // null: no slice lists it, but a claim holds it
  const device::Device* device = nullptr;  // null if `pool` is null
  std::string node;                        // empty: not on a single node
  std::vector<device::Taint> taints;       // its own and those of taint rules
  std::vector<Hold> holds;                 // in order of the claims' names
  std::vector<std::uint32_t> classes;      // indexes into DeviceTable::classes
  DeviceHealth health;
  // Why it cannot be allocated although it is neither held nor tainted: its pool, its node or the
  // counters of its pool. Empty if there is no such reason.
  std::string unusable;

  bool IsHeld() const;     // held by a claim without admin access
  bool IsWaiting() const;  // held by a claim that waits for binding conditions
  bool IsTainted() const;  // has a taint that prevents allocation
  bool IsUnhealthy() const { return health.health == "Unhealthy"; }
  bool IsShareable() const { return device != nullptr && device->allow_multiple_allocations; }
  // Held by a claim that does not share it, or no capacity is left to share.
  bool IsUsedUp() const;
  // Whether a claim that requests such a device could get it, or a share of it, now.
  bool IsFree() const;
  // A one-word summary: the first of Unhealthy, Tainted, Waiting, Held, Unusable and Free that is
  // true.
  std::string_view State() const;
  // How much of this capacity the device's shares consume.
  api::Quantity Consumed(std::string_view capacity) const;
};

// The devices of a snapshot with their holders, ordered by id. Immutable once built. Slices and
// claims that cannot be read are omitted and named in `notes`.
class DeviceTable {
 public:
  struct Options {
    // Determines which classes a device belongs to; null: none.
    device::ExpressionCompiler* compiler = nullptr;
  };
  explicit DeviceTable(const Snapshot& snapshot) : DeviceTable(snapshot, Options()) {}
  DeviceTable(const Snapshot& snapshot, Options options);
  DeviceTable(const DeviceTable&) = delete;
  DeviceTable& operator=(const DeviceTable&) = delete;

  const std::vector<DeviceEntry>& devices() const { return devices_; }
  const std::map<device::PoolId, PoolEntry>& pools() const { return pools_; }
  const std::vector<std::unique_ptr<ClaimUse>>& claims() const { return claims_; }
  const std::vector<std::string>& classes() const { return classes_; }
  const std::vector<std::string>& notes() const { return notes_; }
  const DeviceEntry* Find(const device::DeviceId& id) const;

  // The nodes to ask for device health: those with devices, and those with pods that hold devices.
  std::vector<std::string> NodesToAsk() const;

 private:
  void AddSlices(const Snapshot& snapshot);
  void AddPool(PoolEntry& pool, const std::vector<device::TaintRule>& rules);
  void AddClaims(const Snapshot& snapshot);
  void FindCounters(PoolEntry& pool);
  void FindUnusable(const Snapshot& snapshot);
  void FindClasses(const Snapshot& snapshot, device::ExpressionCompiler& compiler);
  void FindHealth(const Snapshot& snapshot);
  DeviceEntry& EntryFor(const device::DeviceId& id);

  std::map<device::PoolId, PoolEntry> pools_;
  std::vector<DeviceEntry> devices_;
  std::vector<std::unique_ptr<ClaimUse>> claims_;  // by namespace and name
  std::vector<std::string> classes_;
  std::vector<std::string> notes_;
  std::unordered_map<std::string, std::size_t> index_;  // by id; never iterated
};

// Whether the taint prevents allocation.
bool PreventsAllocation(const device::Taint& taint);

// Why pods cannot start on the node now: it is not ready, unresponsive or cordoned. Empty if they
// can.
std::string DescribeNodeProblem(const api::Object& node, const api::Object* lease, WallTime now);

}  // namespace drakkar::answers
