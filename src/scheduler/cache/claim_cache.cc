#include "scheduler/cache/claim_cache.h"

#include "base/result/check.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "device/from_api.h"

namespace drakkar::scheduler {

namespace {

// The devices of an allocation that cannot be read completely, so that they do not count as free. A
// share counts as the whole device, because its amount is unknown.
device::AllocationResult HeldDevices(api::Value allocation) {
  device::AllocationResult held;
  for (api::Value each : allocation["devices"]["results"].elements()) {
    device::DeviceResult result;
    result.id = {std::string(each["driver"].str()), std::string(each["pool"].str()),
                 std::string(each["device"].str())};
    result.admin_access = each["adminAccess"].boolean();
    held.results.push_back(std::move(result));
  }
  return held;
}

}  // namespace

bool HoldSameDevices(const device::AllocationResult& a, const device::AllocationResult& b) {
  if (a.results.size() != b.results.size()) return false;
  for (std::size_t i = 0; i < a.results.size(); ++i) {
    if (a.results[i].id != b.results[i].id || a.results[i].share_id != b.results[i].share_id ||
        a.results[i].admin_access != b.results[i].admin_access) {
      return false;
    }
  }
  return true;
}

bool CachedClaim::IsReservedFor(std::string_view pod_uid) const {
  return claims::IsReservedFor(latest->root(), pod_uid);
}

const CachedClaim* ClaimCache::Find(const std::string& claim_key) const {
  const auto found = claims_.find(claim_key);
  return found == claims_.end() ? nullptr : &found->second;
}

const CachedClaim* ClaimCache::FindExtended(const std::string& pod_uid) const {
  const auto found = extended_.find(pod_uid);
  return found == extended_.end() ? nullptr : Find(*found->second.begin());
}

void ClaimCache::IndexExtended(const api::Object& claim, bool exists) {
  if (!claims::IsForExtendedResources(claim.root())) return;
  const std::optional<claims::Owner> owner = claims::FindOwnerPod(claim.root());
  if (!owner) return;
  std::set<std::string>& keys = extended_[owner->uid];
  if (exists) {
    keys.insert(claim.qualified_name());
  } else {
    keys.erase(claim.qualified_name());
  }
  if (keys.empty()) extended_.erase(owner->uid);
}

void ClaimCache::Observe(const api::ObjectPtr& object) {
  auto [at, is_new] = claims_.try_emplace(object->qualified_name());
  CachedClaim& claim = at->second;
  if (is_new) claim.key = at->first;
  claim.observed = object;
  if (!is_new && object->resource_version() <= claim.latest->resource_version()) return;
  const api::ObjectPtr before = claim.latest;
  SetLatest(claim, object);
  if (handler_) handler_(at->first, before, object);
}

void ClaimCache::Remove(const api::ObjectPtr& object) {
  const auto found = claims_.find(object->qualified_name());
  if (found == claims_.end()) return;
  CachedClaim& claim = found->second;
  if (claim.counted != nullptr) allocated_.Remove(*claim.counted);
  const api::ObjectPtr before = claim.latest;
  const std::string name = found->first;
  IndexExtended(*before, false);
  claims_.erase(found);
  if (handler_) handler_(name, before, nullptr);
}

Result<void> ClaimCache::Assume(const api::ObjectPtr& object) {
  const auto found = claims_.find(object->qualified_name());
  if (found == claims_.end() || found->second.latest->uid() != object->uid()) {
    return NotFound(StrCat("ResourceClaim ", Quote(object->qualified_name()), " is gone"));
  }
  CachedClaim& claim = found->second;
  if (object->resource_version() < claim.latest->resource_version()) {
    return FailedPrecondition(StrCat("ResourceClaim ", Quote(object->qualified_name()),
                                     " is out of sync (stored: ", claim.latest->resource_version(),
                                     ", assume: ", object->resource_version(), ")"));
  }
  if (object->resource_version() == claim.latest->resource_version()) return Ok();
  const api::ObjectPtr before = claim.latest;
  SetLatest(claim, object);
  if (handler_) handler_(found->first, before, object);
  return Ok();
}

void ClaimCache::SetLatest(CachedClaim& claim, const api::ObjectPtr& object) {
  const bool same_claim = claim.latest != nullptr && claim.latest->uid() == object->uid();
  if (!same_claim) {
    if (claim.latest != nullptr) IndexExtended(*claim.latest, false);
    IndexExtended(*object, true);
    claim.spec_problem.clear();
    claim.spec = nullptr;
    if (auto spec = device::ClaimFromApi(object->root()); spec.ok()) {
      claim.spec = std::make_shared<const device::Claim>(std::move(*spec));
    } else {
      claim.spec_problem = spec.error().message;
    }
    claim.pending = nullptr;
    claim.pending_pod.clear();
    claim.is_being_released = false;
  }
  const api::Value allocation = object->root()["status"]["allocation"];
  const bool same_allocation =
      same_claim && api::Equal(allocation, claim.latest->root()["status"]["allocation"]);
  claim.latest = object;
  if (same_allocation) return;
  claim.wait_began.reset();
  claim.problem = claim.spec_problem;
  claim.allocation = nullptr;
  claim.allocation_version = object->resource_version();
  if (allocation.has_value()) {
    if (auto read = device::AllocationFromApi(allocation); read.ok()) {
      claim.allocation = std::make_shared<const device::AllocationResult>(std::move(*read));
    } else {
      claim.problem = read.error().message;
      claim.allocation = std::make_shared<const device::AllocationResult>(HeldDevices(allocation));
    }
  }
  Recount(claim);
}

void ClaimCache::Recount(CachedClaim& claim) {
  const AllocationPtr now = claim.allocation != nullptr ? claim.allocation : claim.pending;
  if (now == claim.counted) return;
  if (now != nullptr && claim.counted != nullptr && HoldSameDevices(*now, *claim.counted)) return;
  if (claim.counted != nullptr) allocated_.Remove(*claim.counted);
  claim.counted = now;
  if (claim.counted != nullptr) allocated_.Add(*claim.counted);
}

std::string ClaimCache::FindContender(const CachedClaim& claim) const {
  std::string first;
  if (allocated_.contested() == 0 || claim.allocation == nullptr) return first;
  const auto holds = [](const device::DeviceResult& result) {
    return !result.admin_access && result.share_id.empty();
  };
  for (const device::DeviceResult& result : claim.allocation->results) {
    if (!holds(result)) continue;
    const device::DeviceUse* use = allocated_.FindDevice(result.id);
    if (use == nullptr || use->exclusive < 2) continue;
    for (const auto& [other_key, other] : claims_) {
      if (&other == &claim || other.allocation == nullptr ||
          other.allocation_version > claim.allocation_version) {
        continue;
      }
      for (const device::DeviceResult& theirs : other.allocation->results) {
        if (!holds(theirs) || theirs.id != result.id) continue;
        if (first.empty() || other_key < first) first = other_key;
      }
    }
  }
  return first;
}

bool ClaimCache::SetPending(const std::string& claim_key, AllocationPtr allocation,
                            const std::string& pod_uid) {
  const auto found = claims_.find(claim_key);
  if (found == claims_.end()) return false;
  CachedClaim& claim = found->second;
  if (claim.allocation != nullptr) return false;
  if (claim.pending != nullptr && claim.pending_pod != pod_uid) return false;
  claim.pending = std::move(allocation);
  claim.pending_pod = pod_uid;
  Recount(claim);
  return true;
}

void ClaimCache::Hold(const std::string& pod_uid, AllocationPtr allocation) {
  allocated_.Add(*allocation);
  const bool is_new = holds_.emplace(pod_uid, std::move(allocation)).second;
  CHECK(is_new);
}

AllocationPtr ClaimCache::FindHold(const std::string& pod_uid) const {
  const auto found = holds_.find(pod_uid);
  return found == holds_.end() ? nullptr : found->second;
}

bool ClaimCache::HandOver(const std::string& pod_uid, const std::string& claim_key) {
  const auto hold = holds_.find(pod_uid);
  const auto found = claims_.find(claim_key);
  if (hold == holds_.end() || found == claims_.end()) return false;
  CachedClaim& claim = found->second;
  if (claim.counted != nullptr) return false;
  claim.pending = std::move(hold->second);
  claim.pending_pod = pod_uid;
  claim.counted = claim.pending;
  holds_.erase(hold);
  return true;
}

bool ClaimCache::ReleaseHold(const std::string& pod_uid) {
  const auto hold = holds_.find(pod_uid);
  if (hold == holds_.end()) return false;
  allocated_.Remove(*hold->second);
  holds_.erase(hold);
  return true;
}

void ClaimCache::NoteWait(const std::string& claim_key, MonotonicTime began) {
  const auto found = claims_.find(claim_key);
  if (found != claims_.end() && !found->second.wait_began) found->second.wait_began = began;
}

void ClaimCache::SetBeingReleased(const std::string& claim_key, std::string_view uid, bool value) {
  const auto found = claims_.find(claim_key);
  if (found == claims_.end() || found->second.latest->uid() != uid) return;
  found->second.is_being_released = value;
}

bool ClaimCache::ClearPending(const std::string& claim_key, const std::string& pod_uid) {
  const auto found = claims_.find(claim_key);
  if (found == claims_.end()) return false;
  CachedClaim& claim = found->second;
  if (claim.pending == nullptr || claim.pending_pod != pod_uid) return false;
  claim.pending = nullptr;
  claim.pending_pod.clear();
  const bool freed = claim.allocation == nullptr;
  Recount(claim);
  return freed;
}

}  // namespace drakkar::scheduler
