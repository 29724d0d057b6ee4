#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "device/device_id.h"
#include "device/slice.h"
#include "device/taint_rule.h"

namespace drakkar::device {

// All slices of one pool, of any generation and target.
struct Pool {
  PoolId id;
  std::map<std::string, std::shared_ptr<const Slice>, std::less<>> slices;  // by name
  // Rules whose driver and pool match, in order of their names.
  std::vector<const TaintRule*> taint_rules;

  // The device's own taints, then those of the rules.
  std::vector<Taint> TaintsOf(const Device& device) const;
};

// The slices of the cluster by pool and node, updated one change at a time.
//
// Its state depends only on the set of slices and rules, never on their order of arrival. Lives on
// the owner's loop. Bounded by the number of slices and rules.
class Inventory {
 public:
  // Adds the slice or replaces the one with its name.
  void SetSlice(std::shared_ptr<const Slice> slice);
  void RemoveSlice(std::string_view name);
  void SetTaintRule(TaintRule rule);
  void RemoveTaintRule(std::string_view name);

  // Null if no slice of it is known.
  const Pool* FindPool(const PoolId& id) const;
  const std::map<PoolId, Pool>& pools() const { return pools_; }
  // Pools with a slice for exactly this node.
  const std::set<PoolId>& PoolsOfNode(std::string_view node_name) const;
  // Pools with a slice that is not for exactly one node.
  const std::set<PoolId>& shared_pools() const { return shared_pools_; }

  // A pool whose slices or taints changed, with the nodes that had or have node-local slices of it.
  struct Change {
    PoolId pool;
    std::set<std::string> nodes;
    bool shared = false;  // it had or has slices that are not for exactly one node
  };
  // Changes since the last call, at most one per pool, in order of pools. For a single consumer,
  // which keeps an index over the inventory.
  std::vector<Change> TakeChanges();

 private:
  void Index(const Slice& slice);
  void Unindex(const Slice& slice);
  void NoteChange(const Pool& pool);
  void Link(Pool& pool);
  void RelinkPoolsOf(const TaintRule& rule);

  std::map<PoolId, Pool> pools_;
  std::map<std::string, PoolId, std::less<>> pool_of_slice_;
  std::map<std::string, std::set<PoolId>, std::less<>> pools_of_node_;
  std::set<PoolId> shared_pools_;
  std::map<std::string, TaintRule, std::less<>> taint_rules_;
  std::map<PoolId, Change> changes_;
};

}  // namespace drakkar::device
