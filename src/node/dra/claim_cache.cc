#include "node/dra/claim_cache.h"

#include "node/dra/skip_operations.h"

namespace drakkar::node {

void ClaimCache::Load(const CheckpointState& state) {
  claims_.clear();
  if (!state) return;
  for (const CheckpointClaim& each : *state) {
    ClaimInfo info;
    info.uid = each.uid;
    info.name = each.name;
    info.namespace_name = each.namespace_name;
    if (each.pod_uids) info.pod_uids = *each.pod_uids;
    if (each.driver_state) {
      for (const auto& [name, driver] : *each.driver_state) {
        ClaimDriver& loaded = info.drivers[name];
        loaded.skip_node_operations = driver.skip_node_operations;
        if (!driver.devices) continue;
        loaded.answered = !Skips(driver.skip_node_operations, kSkipPrepare);
        for (const CheckpointDevice& device : *driver.devices) {
          rpc::PreparedDevice prepared;
          prepared.pool_name = device.pool_name;
          prepared.device_name = device.device_name;
          prepared.share_id = device.share_id;
          if (device.request_names) prepared.request_names = *device.request_names;
          if (device.cdi_device_ids) prepared.cdi_device_ids = *device.cdi_device_ids;
          loaded.devices.push_back(std::move(prepared));
        }
      }
    }
    claims_[Key(info.namespace_name, info.name)] = std::move(info);
  }
}

CheckpointState ClaimCache::Save() const {
  if (claims_.empty()) return std::nullopt;
  auto list = [](const std::vector<std::string>& from) {
    return from.empty() ? std::optional<std::vector<std::string>>() : from;
  };
  std::vector<CheckpointClaim> state;
  for (const auto& [key, info] : claims_) {
    CheckpointClaim claim{
        .uid = info.uid, .name = info.name, .namespace_name = info.namespace_name};
    claim.pod_uids = info.pod_uids;
    claim.driver_state.emplace();
    for (const auto& [name, driver] : info.drivers) {
      CheckpointDriver& saved = (*claim.driver_state)[name];
      saved.skip_node_operations = driver.skip_node_operations;
      const bool skips = Skips(driver.skip_node_operations, kSkipPrepare);
      if (!driver.answered && (!skips || driver.devices.empty())) continue;
      saved.devices.emplace();
      for (const rpc::PreparedDevice& device : driver.devices) {
        saved.devices->push_back({.pool_name = device.pool_name,
                                  .device_name = device.device_name,
                                  .share_id = device.share_id,
                                  .request_names = list(device.request_names),
                                  .cdi_device_ids = list(device.cdi_device_ids)});
      }
    }
    state.push_back(std::move(claim));
  }
  return state;
}

ClaimInfo* ClaimCache::Find(const std::string& key) {
  auto found = claims_.find(key);
  return found == claims_.end() ? nullptr : &found->second;
}

const ClaimInfo* ClaimCache::Find(const std::string& key) const {
  auto found = claims_.find(key);
  return found == claims_.end() ? nullptr : &found->second;
}

ClaimInfo& ClaimCache::Add(ClaimInfo info) {
  std::string key = Key(info.namespace_name, info.name);
  return claims_[std::move(key)] = std::move(info);
}

std::vector<std::string> ClaimCache::KeysOfPod(const std::string& pod_uid) const {
  std::vector<std::string> keys;
  for (const auto& [key, info] : claims_) {
    if (info.pod_uids.contains(pod_uid)) keys.push_back(key);
  }
  return keys;
}

std::set<std::string> ClaimCache::PodUids() const {
  std::set<std::string> uids;
  for (const auto& [key, info] : claims_) uids.insert(info.pod_uids.begin(), info.pod_uids.end());
  return uids;
}

}  // namespace drakkar::node
