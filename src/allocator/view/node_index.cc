#include "allocator/view/node_index.h"

#include <algorithm>

#include "base/result/check.h"

namespace drakkar::allocator {
namespace {

bool OrderById(const std::shared_ptr<PoolView>& view, const device::PoolId& id) {
  return view->id < id;
}

}  // namespace

NodeIndex::NodeIndex(device::Inventory& inventory, device::AllocatedState& allocated,
                     ShapeTable& shapes, const Features& features)
    : inventory_(inventory), allocated_(allocated), shapes_(shapes), features_(features) {}

NodeNumber NodeIndex::SetNode(device::Node node) {
  const auto found = numbers_.find(node.name);
  NodeNumber number = 0;
  if (found != numbers_.end()) {
    number = found->second;
    if (entries_[number].node == node) return number;
  } else if (!free_numbers_.empty()) {
    number = free_numbers_.back();
    free_numbers_.pop_back();
  } else {
    number = static_cast<NodeNumber>(entries_.size());
    entries_.emplace_back();
    classes_.push_back(kNoClass);
    is_dirty_.push_back(0);
  }
  numbers_[node.name] = number;
  Entry& entry = entries_[number];
  entry.known = true;
  entry.declares_optional_operations =
      features_.ignores_declared_features || device::CanSkipOperations(node);
  entry.node = std::move(node);
  RegatherNode(number);
  return number;
}

void NodeIndex::RemoveNode(std::string_view name) {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) return;
  const NodeNumber number = found->second;
  numbers_.erase(found);
  entries_[number] = Entry();
  classes_[number] = kNoClass;
  free_numbers_.push_back(number);
}

const NodeNumber* NodeIndex::FindNode(std::string_view name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? nullptr : &found->second;
}

void NodeIndex::Refresh() {
  RefreshInventory();
  RefreshAllocated();
  if (shape_epoch_ != shapes_.epoch() || class_ids_.size() > kMaxClasses ||
      pool_states_.size() > kMaxClasses) {
    RenumberEverything();
  }
  for (const NodeNumber number : dirty_) {
    is_dirty_[number] = 0;
    if (entries_[number].known) Classify(number);
  }
  dirty_.clear();
}

void NodeIndex::RefreshInventory() {
  for (const device::Inventory::Change& change : inventory_.TakeChanges()) {
    shared_views_.erase(change.pool);
    if (change.shared) {
      for (NodeNumber number = 0; number < entries_.size(); ++number) {
        if (entries_[number].known) RegatherPool(number, change.pool);
      }
      continue;
    }
    for (const std::string& name : change.nodes) {
      const auto found = numbers_.find(name);
      if (found != numbers_.end()) RegatherPool(found->second, change.pool);
    }
  }
}

void NodeIndex::RefreshAllocated() {
  for (const device::PoolId& id : allocated_.TakeChanges()) {
    const device::PoolUse* use = allocated_.FindPool(id);
    const auto shared = shared_views_.find(id);
    if (shared != shared_views_.end()) {
      ++shared_version_;
      for (const auto& [key, view] : shared->second) RefreshUse(*view, use, pool_states_);
      continue;
    }
    const device::Pool* pool = inventory_.FindPool(id);
    if (pool == nullptr) continue;
    const auto found = numbers_.find(pool->slices.begin()->second->target.node_name);
    if (found == numbers_.end()) continue;
    auto& views = entries_[found->second].pools;
    const auto at = std::lower_bound(views.begin(), views.end(), id, OrderById);
    if (at == views.end() || (*at)->id != id) continue;
    RefreshUse(**at, use, pool_states_);
    MarkDirty(found->second);
  }
}

void NodeIndex::RegatherNode(NodeNumber number) {
  Entry& entry = entries_[number];
  entry.pools.clear();
  std::set<device::PoolId> ids = inventory_.PoolsOfNode(entry.node.name);
  ids.insert(inventory_.shared_pools().begin(), inventory_.shared_pools().end());
  for (const device::PoolId& id : ids) {
    std::shared_ptr<PoolView> view = ViewFor(*inventory_.FindPool(id), entry.node);
    if (view != nullptr) entry.pools.push_back(std::move(view));
  }
  MarkDirty(number);
}

void NodeIndex::RegatherPool(NodeNumber number, const device::PoolId& id) {
  Entry& entry = entries_[number];
  const auto at = std::lower_bound(entry.pools.begin(), entry.pools.end(), id, OrderById);
  const bool present = at != entry.pools.end() && (*at)->id == id;
  const device::Pool* pool = inventory_.FindPool(id);
  std::shared_ptr<PoolView> view = pool == nullptr ? nullptr : ViewFor(*pool, entry.node);
  if (view == nullptr && !present) return;
  if (view == nullptr) {
    entry.pools.erase(at);
  } else if (present) {
    *at = std::move(view);
  } else {
    entry.pools.insert(at, std::move(view));
  }
  MarkDirty(number);
}

std::shared_ptr<PoolView> NodeIndex::ViewFor(const device::Pool& pool, const device::Node& node) {
  const PoolTargets targets = FindTargets(pool, node, features_);
  if (!targets.any && !targets.broken) return nullptr;
  std::shared_ptr<PoolView> view;
  if (!targets.broken) {
    const auto shared = shared_views_.find(pool.id);
    if (shared != shared_views_.end()) {
      const auto found = shared->second.find(targets.key);
      if (found != shared->second.end()) return found->second;
    }
  }
  view = BuildPoolView(pool, targets, features_);
  if (view == nullptr) return nullptr;
  view->identity = next_identity_++;
  Prepare(*view);
  if (!view->local && !targets.broken) shared_views_[pool.id][targets.key] = view;
  return view;
}

void NodeIndex::Prepare(PoolView& view) {
  RefreshShapes(view, shapes_, pool_shapes_);
  RefreshUse(view, allocated_.FindPool(view.id), pool_states_);
}

void NodeIndex::RenumberEverything() {
  shape_epoch_ = shapes_.epoch();
  ++generation_;
  pool_shapes_.Clear();
  pool_states_.Clear();
  class_ids_.Clear();
  for (const auto& [id, views] : shared_views_) {
    for (const auto& [key, view] : views) Prepare(*view);
  }
  for (NodeNumber number = 0; number < entries_.size(); ++number) {
    if (!entries_[number].known) continue;
    for (const std::shared_ptr<PoolView>& view : entries_[number].pools) {
      if (view->local || view->status == PoolView::Status::kBroken) Prepare(*view);
    }
    MarkDirty(number);
  }
}

void NodeIndex::Classify(NodeNumber number) {
  Entry& entry = entries_[number];
  key_.Clear();
  key_.Flag(entry.declares_optional_operations);
  entry.has_shared_pools = false;
  for (const std::shared_ptr<PoolView>& view : entry.pools) {
    key_.Flag(view->local);
    key_.Small(view->local ? view->state_id : view->identity);
    entry.has_shared_pools = entry.has_shared_pools || !view->local;
  }
  classes_[number] = class_ids_.Intern(key_.bytes());
}

void NodeIndex::MarkDirty(NodeNumber number) {
  if (is_dirty_[number]) return;
  is_dirty_[number] = 1;
  dirty_.push_back(number);
}

}  // namespace drakkar::allocator
