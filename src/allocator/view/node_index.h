#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "allocator/features.h"
#include "allocator/view/pool_view.h"
#include "allocator/view/shape_table.h"
#include "device/allocated_state.h"
#include "device/inventory.h"

namespace drakkar::allocator {

// A dense number for a known node. Numbers of removed nodes are reused.
using NodeNumber = std::uint32_t;

// What every node offers right now, and which nodes offer the same.
//
// Nodes of one class have pools of equal shape in equal use, in the same order: a search finds the
// same devices, by position, on each of them. A pool that several nodes see is part of a class by
// identity, without its use, so an answer cached for a class is valid only with `shared_version`.
//
// Follows one Inventory and one AllocatedState as the only consumer of their changes, on their
// loop.
class NodeIndex {
 public:
  // Beyond this many classes all are dropped and renumbered, and `generation` is raised.
  static constexpr std::size_t kMaxClasses = 1 << 16;

  NodeIndex(device::Inventory& inventory, device::AllocatedState& allocated, ShapeTable& shapes,
            const Features& features);

  // Adds or replaces the node.
  NodeNumber SetNode(device::Node node);
  void RemoveNode(std::string_view name);
  // Null if there is no such node.
  const NodeNumber* FindNode(std::string_view name) const;

  struct Entry {
    device::Node node;
    bool known = false;
    bool declares_optional_operations = false;
    std::vector<std::shared_ptr<PoolView>> pools;  // in order of their ids
    bool has_shared_pools = false;
  };
  // Valid after Refresh.
  const Entry& entry(NodeNumber number) const { return entries_[number]; }
  // Per node number; kNoClass for numbers that are not in use.
  static constexpr std::uint32_t kNoClass = ~std::uint32_t{0};
  const std::vector<std::uint32_t>& classes() const { return classes_; }
  std::size_t class_count() const { return class_ids_.size(); }
  std::uint64_t generation() const { return generation_; }
  std::uint64_t shared_version() const { return shared_version_; }

  // Applies changes of inventory, allocations, nodes and shapes, at a cost proportional to them.
  void Refresh();

 private:
  void RefreshInventory();
  void RefreshAllocated();
  void RegatherNode(NodeNumber number);
  void RegatherPool(NodeNumber number, const device::PoolId& id);
  std::shared_ptr<PoolView> ViewFor(const device::Pool& pool, const device::Node& node);
  void Prepare(PoolView& view);
  void RenumberEverything();
  void Classify(NodeNumber number);
  void MarkDirty(NodeNumber number);

  device::Inventory& inventory_;
  device::AllocatedState& allocated_;
  ShapeTable& shapes_;
  const Features features_;

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> classes_;
  std::unordered_map<std::string, NodeNumber, TextHash, std::equal_to<>>
      numbers_;  // never iterated
  std::vector<NodeNumber> free_numbers_;
  std::vector<NodeNumber> dirty_;
  std::vector<std::uint8_t> is_dirty_;

  // Views of pools that are not for a single node, by target.
  std::map<device::PoolId, std::map<std::string, std::shared_ptr<PoolView>>> shared_views_;
  std::uint32_t next_identity_ = 0;

  Interner pool_shapes_;
  Interner pool_states_;
  Interner class_ids_;
  std::uint64_t shape_epoch_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t shared_version_ = 0;
  KeyBuilder key_;
};

}  // namespace drakkar::allocator
