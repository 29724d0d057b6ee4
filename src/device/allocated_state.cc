#include "device/allocated_state.h"

namespace drakkar::device {

void AllocatedState::Add(const AllocationResult& allocation) {
  for (const DeviceResult& result : allocation.results) {
    if (result.admin_access) continue;
    if (result.share_id.empty()) {
      AddExclusive(result.id);
    } else {
      AddShare(result.id, result.share_id);
      AddConsumed(result.id, result.consumed_capacity);
    }
  }
}

void AllocatedState::Remove(const AllocationResult& allocation) {
  for (const DeviceResult& result : allocation.results) {
    if (result.admin_access) continue;
    if (result.share_id.empty()) {
      RemoveExclusive(result.id);
    } else {
      RemoveConsumed(result.id, result.consumed_capacity);
      RemoveShare(result.id, result.share_id);
    }
  }
}

void AllocatedState::AddExclusive(const DeviceId& id) {
  if (++Use(id).exclusive == 2) ++contested_;
}

void AllocatedState::RemoveExclusive(const DeviceId& id) {
  DeviceUse& use = Use(id);
  if (use.exclusive > 0 && --use.exclusive == 1) --contested_;
  DropIfUnused(id);
}

void AllocatedState::Bar(const DeviceId& id) {
  ++Use(id).bars;
}

void AllocatedState::Unbar(const DeviceId& id) {
  DeviceUse& use = Use(id);
  if (use.bars > 0) --use.bars;
  DropIfUnused(id);
}

void AllocatedState::AddShare(const DeviceId& id, std::string_view share_id) {
  Use(id).shares.emplace(share_id);
}

void AllocatedState::RemoveShare(const DeviceId& id, std::string_view share_id) {
  DeviceUse& use = Use(id);
  use.shares.erase(std::string(share_id));
  // Otherwise consumption without a share would never be removed.
  if (use.shares.empty()) use.consumed.clear();
  DropIfUnused(id);
}

void AllocatedState::AddConsumed(const DeviceId& id,
                                 const std::vector<ConsumedCapacity>& consumed) {
  DeviceUse& use = Use(id);
  for (const ConsumedCapacity& one : consumed) use.consumed[one.name].Add(one.value);
  DropIfUnused(id);  // nothing was consumed, and there was no share
}

void AllocatedState::RemoveConsumed(const DeviceId& id,
                                    const std::vector<ConsumedCapacity>& consumed) {
  DeviceUse& use = Use(id);
  for (const ConsumedCapacity& one : consumed) {
    const auto found = use.consumed.find(one.name);
    if (found != use.consumed.end()) found->second.Subtract(one.value);
  }
  DropIfUnused(id);
}

const PoolUse* AllocatedState::FindPool(const PoolId& id) const {
  const auto found = pools_.find(id);
  return found == pools_.end() ? nullptr : &found->second;
}

const DeviceUse* AllocatedState::FindDevice(const DeviceId& id) const {
  const PoolUse* pool = FindPool(id.pool_id());
  if (pool == nullptr) return nullptr;
  const auto found = pool->devices.find(id.device);
  return found == pool->devices.end() ? nullptr : &found->second;
}

std::vector<PoolId> AllocatedState::TakeChanges() {
  std::vector<PoolId> changes(changes_.begin(), changes_.end());
  changes_.clear();
  return changes;
}

DeviceUse& AllocatedState::Use(const DeviceId& id) {
  PoolId pool = id.pool_id();
  DeviceUse& use = pools_[pool].devices[id.device];
  changes_.insert(std::move(pool));
  return use;
}

void AllocatedState::DropIfUnused(const DeviceId& id) {
  const auto pool = pools_.find(id.pool_id());
  const auto device = pool->second.devices.find(id.device);
  DeviceUse& use = device->second;
  if (use.shares.empty()) {
    std::erase_if(use.consumed, [](const auto& entry) { return entry.second.IsZero(); });
  }
  if (use.IsUsed() || use.bars > 0) return;
  pool->second.devices.erase(device);
  if (pool->second.devices.empty()) pools_.erase(pool);
}

}  // namespace drakkar::device
