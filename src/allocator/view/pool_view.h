#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allocator/features.h"
#include "allocator/view/shape_table.h"
#include "device/allocated_state.h"
#include "device/inventory.h"

namespace drakkar::allocator {

// What a device takes from the counters of its pool, by number.
struct CounterNeed {
  struct Amount {
    std::uint32_t counter;
    const api::Quantity* value;
  };
  struct Membership {
    std::uint32_t counter_set;
    const std::vector<std::string>* groups;
  };
  std::vector<Amount> amounts;
  std::vector<Membership> sets;
};

struct ViewDevice {
  const device::Device* device;
  const device::Slice* slice;
  bool targets_node;  // false only for slices that select nodes per device
  std::uint32_t shape;
};

// Compatibility groups of the members of one counter set: none yet, only members without groups,
// or the groups that all members have in common.
struct GroupState {
  bool has_members = false;
  bool grouped = false;
  std::vector<std::string> common;  // sorted
};

// One pool as seen by one node, or by all nodes with the same view of it.
struct PoolView {
  enum class Status {
    kUsable,
    kIncomplete,  // slices are missing, so it has no devices for now
    kInvalid,     // slices contradict each other, so it has no devices
    kBroken,      // a node selector cannot be evaluated: fatal
  };

  device::PoolId id;
  std::vector<std::shared_ptr<const device::Slice>> slices;  // keeps the devices below alive
  bool local = false;  // every slice of the pool is for this one node
  Status status = Status::kUsable;
  std::string reason;  // set unless the pool is usable

  std::vector<ViewDevice> devices;                 // in order of slice name, then as listed
  std::vector<std::vector<device::Taint>> taints;  // effective taints, parallel to `devices`
  bool has_binding_conditions = false;
  bool skips_node_operations = false;

  // Counters; all empty unless devices consume some.
  std::vector<api::Quantity> declared;     // per counter
  std::vector<std::string> counter_names;  // "set/counter"
  std::size_t counter_set_count = 0;
  std::vector<CounterNeed> counter_needs;  // parallel to `devices`
  struct Elsewhere {
    std::string device;
    CounterNeed need;
  };
  std::vector<Elsewhere> elsewhere;  // consumers in slices for other nodes

  // Current use, set by RefreshUse.
  std::vector<std::uint8_t> in_use;  // held exclusively or barred; parallel to `devices`
  std::vector<const device::DeviceUse*> shared_use;  // null unless shared
  std::vector<api::Quantity> available;              // per counter, may be negative
  bool overcommitted = false;                        // some counter is negative
  std::vector<GroupState> groups;                    // per counter set

  std::uint32_t identity = 0;  // unique to this object, for pools that several nodes see
  std::uint32_t shape_id = 0;  // equal for equal pools
  std::uint32_t state_id = 0;  // equal for equal pools in equal use
};

// Which slices, and which devices of those that select per device, are for a node.
struct PoolTargets {
  std::string key;  // equal for equal targets
  bool any = false;
  std::optional<std::string> broken;  // why a selector could not be evaluated
};

PoolTargets FindTargets(const device::Pool& pool, const device::Node& node,
                        const Features& features);

// The pool as seen by `targets`, or null if a newer generation that has nothing for this node is
// replacing it.
std::shared_ptr<PoolView> BuildPoolView(const device::Pool& pool, const PoolTargets& targets,
                                        const Features& features);

// Renumbers the shapes of the view's devices.
void RefreshShapes(PoolView& view, ShapeTable& shapes, Interner& pool_shapes);

// Updates how the pool's devices are held; `use` is null if none is held. The view keeps pointers
// into `use` until the next call.
void RefreshUse(PoolView& view, const device::PoolUse* use, Interner& pool_states);

// Adds a member with `groups` to a counter set, or returns false and changes nothing.
bool JoinGroups(GroupState& state, const std::vector<std::string>& groups);

}  // namespace drakkar::allocator
