#include "node/dra/dra_manager.h"

#include <algorithm>

#include "api/meta/request_name.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"
#include "node/dra/pod_claims.h"
#include "node/dra/skip_operations.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr Logger kLog("node.dra");

}  // namespace

DraManager::DraManager(Options options) : options_(options), metrics_(options.metrics) {
  options_.checkpoint.SetSource([this] { return cache_.Save(); });
}

DraManager::~DraManager() = default;

Result<void> DraManager::Load() {
  auto state = options_.checkpoint.LoadOrCreate();
  if (!state.ok()) return state.error().Prefixed("create ResourceClaim cache");
  if (state->has_value() && !options_.gates.Known(Gate::kDRAOptionalNodePreparation)) {
    // A release without KEP-5945 does not know this key and drops it with the next write.
    for (CheckpointClaim& claim : **state) {
      if (!claim.driver_state) continue;
      for (auto& [name, driver] : *claim.driver_state) {
        // That driver was never called, so no devices are lost.
        if (!driver.skip_node_operations.empty() && !driver.devices) driver.devices.emplace();
        driver.skip_node_operations.clear();
      }
    }
  }
  cache_.Load(*state);
  metrics_.ClaimsInUse(cache_);
  return Ok();
}

void DraManager::StartReconcile(std::function<std::optional<std::set<std::string>>()> active_pods) {
  active_pods_ = std::move(active_pods);
  ReconcileNow();
}

void DraManager::ReconcileNow() {
  if (!active_pods_) return;
  reconcile_ = options_.loop.RunAfter(kReconcileEvery, [this] { ReconcileNow(); });
  const std::optional<std::set<std::string>> active = active_pods_();
  if (!active) return;
  for (const std::string& uid : cache_.PodUids()) {
    if (active->contains(uid)) continue;
    Unprepare(uid, [uid](Result<void> result) {
      if (result.ok()) return;
      kLog.Warning("could not unprepare claims of a deleted pod",
                   {{"podUID", uid}, {"err", result.error().message}});
    });
  }
}

// --- queries

Result<std::vector<std::string>> DraManager::CdiDevices(Value pod, Value container) const {
  std::vector<std::string> ids;
  const std::string home(pod["metadata"]["namespace"].str());
  for (const ContainerClaim& use : ListContainerClaims(pod, container)) {
    const ClaimInfo* info = cache_.Find(ClaimCache::Key(home, use.claim_name));
    if (info == nullptr) {
      return Internal(StrCat("internal error: unable to get claim info for ResourceClaim ",
                             use.claim_name, " in namespace ", home));
    }
    for (const auto& [driver, state] : info->drivers) {
      for (const rpc::PreparedDevice& device : state.devices) {
        bool matches = use.request.empty() || device.request_names.empty();
        for (const std::string& request : device.request_names) {
          matches = matches || api::BaseRequest(request) == api::BaseRequest(use.request);
        }
        if (matches)
          ids.insert(ids.end(), device.cdi_device_ids.begin(), device.cdi_device_ids.end());
      }
    }
  }
  return ids;
}

bool DraManager::HoldsAll(Value pod, const std::function<bool(const ClaimInfo&)>& is_fit) const {
  auto claims = ListPodClaims(pod);
  if (!claims.ok()) return false;
  const std::string home(pod["metadata"]["namespace"].str());
  const std::string uid(pod["metadata"]["uid"].str());
  return std::ranges::all_of(*claims, [&](const PodClaim& claim) {
    const ClaimInfo* info = cache_.Find(ClaimCache::Key(home, claim.claim_name));
    return info != nullptr && info->pod_uids.contains(uid) && is_fit(*info);
  });
}

bool DraManager::IsPrepared(Value pod) const {
  return HoldsAll(
      pod, [](const ClaimInfo& info) { return info.phase.state() == ClaimPhase::kPrepared; });
}

bool DraManager::KnowsDevices(Value pod) const {
  return HoldsAll(pod, [](const ClaimInfo& info) {
    return std::ranges::all_of(info.drivers, [](const auto& driver) {
      return driver.second.answered || Skips(driver.second.skip_node_operations, kSkipPrepare);
    });
  });
}

std::optional<std::string> DraManager::FindDisallowedSkip(const std::string& pod_uid) const {
  if (options_.gates.Enabled(Gate::kDRAOptionalNodePreparation) ||
      !options_.gates.Enabled(Gate::kNodeDeclaredFeatures)) {
    return std::nullopt;
  }
  for (const std::string& key : cache_.KeysOfPod(pod_uid)) {
    for (const auto& [driver, state] : cache_.Find(key)->drivers) {
      if (!state.skip_node_operations.empty()) return key;
    }
  }
  return std::nullopt;
}

}  // namespace drakkar::node
