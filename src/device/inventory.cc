#include "device/inventory.h"

#include "base/result/check.h"

namespace drakkar::device {

std::vector<Taint> Pool::TaintsOf(const Device& device) const {
  std::vector<Taint> taints = device.taints;
  for (const TaintRule* rule : taint_rules) {
    if (rule->MatchesDevice(device.name)) taints.push_back(rule->taint);
  }
  return taints;
}

void Inventory::SetSlice(std::shared_ptr<const Slice> slice) {
  CHECK(slice != nullptr);
  RemoveSlice(slice->name);
  const PoolId id = slice->pool_id();
  Pool& pool = pools_[id];
  if (pool.slices.empty()) {
    pool.id = id;
    Link(pool);
  }
  pool_of_slice_.emplace(slice->name, id);
  Index(*slice);
  pool.slices[slice->name] = std::move(slice);
  NoteChange(pool);
}

void Inventory::RemoveSlice(std::string_view name) {
  const auto found = pool_of_slice_.find(name);
  if (found == pool_of_slice_.end()) return;
  const auto at = pools_.find(found->second);
  CHECK(at != pools_.end());
  Pool& pool = at->second;
  NoteChange(pool);
  const auto slice = pool.slices.find(name);
  CHECK(slice != pool.slices.end());
  const std::shared_ptr<const Slice> removed = slice->second;
  pool.slices.erase(slice);
  pool_of_slice_.erase(found);
  Unindex(*removed);
  if (pool.slices.empty()) pools_.erase(at);
}

void Inventory::SetTaintRule(TaintRule rule) {
  RemoveTaintRule(rule.name);
  const auto [at, inserted] = taint_rules_.emplace(rule.name, std::move(rule));
  RelinkPoolsOf(at->second);
}

void Inventory::RemoveTaintRule(std::string_view name) {
  const auto found = taint_rules_.find(name);
  if (found == taint_rules_.end()) return;
  auto node = taint_rules_.extract(found);
  RelinkPoolsOf(node.mapped());
}

const Pool* Inventory::FindPool(const PoolId& id) const {
  const auto found = pools_.find(id);
  return found == pools_.end() ? nullptr : &found->second;
}

const std::set<PoolId>& Inventory::PoolsOfNode(std::string_view node_name) const {
  static const std::set<PoolId> kNone;
  const auto found = pools_of_node_.find(node_name);
  return found == pools_of_node_.end() ? kNone : found->second;
}

std::vector<Inventory::Change> Inventory::TakeChanges() {
  std::vector<Change> changes;
  changes.reserve(changes_.size());
  for (auto& [id, change] : changes_) changes.push_back(std::move(change));
  changes_.clear();
  return changes;
}

void Inventory::Index(const Slice& slice) {
  const PoolId id = slice.pool_id();
  if (slice.target.node_name.empty()) {
    shared_pools_.insert(id);
  } else {
    pools_of_node_[slice.target.node_name].insert(id);
  }
}

void Inventory::Unindex(const Slice& slice) {
  const PoolId id = slice.pool_id();
  const Pool& pool = pools_.at(id);
  for (const auto& [name, other] : pool.slices) {
    if (other->target.node_name == slice.target.node_name) return;
  }
  if (slice.target.node_name.empty()) {
    shared_pools_.erase(id);
    return;
  }
  const auto node = pools_of_node_.find(slice.target.node_name);
  node->second.erase(id);
  if (node->second.empty()) pools_of_node_.erase(node);
}

void Inventory::NoteChange(const Pool& pool) {
  Change& change = changes_[pool.id];
  change.pool = pool.id;
  for (const auto& [name, slice] : pool.slices) {
    if (slice->target.node_name.empty()) {
      change.shared = true;
    } else {
      change.nodes.insert(slice->target.node_name);
    }
  }
}

void Inventory::Link(Pool& pool) {
  pool.taint_rules.clear();
  for (const auto& [name, rule] : taint_rules_) {
    if (rule.MatchesPool(pool.id)) pool.taint_rules.push_back(&rule);
  }
}

void Inventory::RelinkPoolsOf(const TaintRule& rule) {
  for (auto& [id, pool] : pools_) {
    if (!rule.MatchesPool(id)) continue;
    Link(pool);
    NoteChange(pool);
  }
}

}  // namespace drakkar::device
