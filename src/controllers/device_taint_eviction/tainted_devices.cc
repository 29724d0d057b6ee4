#include "controllers/device_taint_eviction/tainted_devices.h"

#include <algorithm>

#include "api/meta/time.h"
#include "device/from_api.h"

namespace drakkar::controllers {

namespace {

constexpr std::string_view kNoExecute = "NoExecute";

device::DeviceId IdOf(api::Value result) {
  return {std::string(result["driver"].str()), std::string(result["pool"].str()),
          std::string(result["device"].str())};
}

std::vector<device::Toleration> TolerationsOf(api::Value result) {
  std::vector<device::Toleration> tolerations;
  for (api::Value each : result["tolerations"].elements()) {
    // A toleration for every effect permits allocation. Only one for exactly this effect keeps the
    // pod, as in Kubernetes.
    if (each["effect"].str() != kNoExecute) continue;
    tolerations.push_back({.key = std::string(each["key"].str()),
                           .op = std::string(each["operator"].str()),
                           .value = std::string(each["value"].str()),
                           .effect = std::string(kNoExecute),
                           .toleration_seconds = each["tolerationSeconds"].optional_integer()});
  }
  return tolerations;
}

std::vector<device::Taint> NoExecuteTaints(api::Value taints) {
  std::vector<device::Taint> found;
  for (api::Value each : taints.elements()) {
    if (each["effect"].str() != kNoExecute) continue;
    found.push_back({.key = std::string(each["key"].str()),
                     .value = std::string(each["value"].str()),
                     .effect = std::string(kNoExecute),
                     .time_added = std::string(each["timeAdded"].str())});
  }
  return found;
}

// When the taint evicts a pod with these tolerations; nullopt: never. A taint without a time counts
// as old.
std::optional<WallTime> EndOf(const device::Taint& taint,
                              const std::vector<device::Toleration>& tolerations) {
  const Result<WallTime> time = api::ParseTime(taint.time_added);
  const WallTime added = time.ok() ? *time : WallTime{};
  bool tolerated = false;
  std::optional<std::int64_t> seconds;
  for (const device::Toleration& toleration : tolerations) {
    if (!device::Tolerates(toleration, taint)) continue;
    tolerated = true;
    if (!toleration.toleration_seconds) continue;
    // A year is longer than anybody waits, and keeps the sum in range.
    constexpr std::int64_t kMost = 365 * 24 * 3600;
    const std::int64_t own = std::clamp<std::int64_t>(*toleration.toleration_seconds, 0, kMost);
    seconds = std::min(seconds.value_or(own), own);
  }
  if (!tolerated) return added;
  if (!seconds) return std::nullopt;
  return added + std::chrono::seconds(*seconds);
}

void Merge(std::optional<DeviceEviction>& eviction, WallTime at, std::string_view rule) {
  if (!eviction) eviction = DeviceEviction{.at = at, .rules = {}};
  eviction->at = std::min(eviction->at, at);
  if (!rule.empty()) eviction->rules.emplace(rule);
}

}  // namespace

bool TaintedDevices::SetSlice(const api::Object& object) {
  const api::Value spec = object["spec"];
  Slice slice{.pool = {std::string(spec["driver"].str()), std::string(spec["pool"]["name"].str())},
              .generation = spec["pool"]["generation"].integer(),
              .taints = {}};
  for (api::Value each : spec["devices"].elements()) {
    std::vector<device::Taint> taints = NoExecuteTaints(each["taints"]);
    if (!taints.empty()) slice.taints.emplace(each["name"].str(), std::move(taints));
  }
  const bool removed = RemoveSlice(object.name());
  const bool tainted = !slice.taints.empty();
  auto& generations = pools_[slice.pool];
  // A newer generation hides the taints of older ones.
  const bool hides = !generations.empty() && generations.rbegin()->first < slice.generation;
  generations[slice.generation].emplace(object.name());
  if (tainted) ++tainted_slices_;
  slices_.emplace(object.name(), std::move(slice));
  return removed || tainted || (hides && tainted_slices_ > 0);
}

bool TaintedDevices::RemoveSlice(std::string_view name) {
  const auto found = slices_.find(name);
  if (found == slices_.end()) return false;
  const bool tainted = !found->second.taints.empty();
  if (tainted) --tainted_slices_;
  Unlink(found->first, found->second);
  slices_.erase(found);
  // Without it, an older generation may count again.
  return tainted || tainted_slices_ > 0;
}

void TaintedDevices::Unlink(const std::string& name, const Slice& slice) {
  const auto pool = pools_.find(slice.pool);
  const auto generation = pool->second.find(slice.generation);
  generation->second.erase(name);
  if (generation->second.empty()) pool->second.erase(generation);
  if (pool->second.empty()) pools_.erase(pool);
}

bool TaintedDevices::SetRule(const api::Object& object) {
  Result<device::TaintRule> rule = device::TaintRuleFromApi(object.root());
  const bool removed = RemoveRule(object.name());
  if (!rule.ok() || rule->taint.effect != kNoExecute) return removed;
  rules_.emplace(object.name(), std::move(*rule));
  return true;
}

bool TaintedDevices::RemoveRule(std::string_view name) {
  const auto found = rules_.find(name);
  if (found == rules_.end()) return false;
  rules_.erase(found);
  return true;
}

std::optional<DeviceEviction> TaintedDevices::EvictionOf(api::Value claim) const {
  std::optional<DeviceEviction> eviction;
  for (api::Value result : claim["status"]["allocation"]["devices"]["results"].elements()) {
    AddTaintsOf(IdOf(result), TolerationsOf(result), eviction);
  }
  return eviction;
}

void TaintedDevices::AddTaintsOf(const device::DeviceId& id,
                                 const std::vector<device::Toleration>& tolerations,
                                 std::optional<DeviceEviction>& eviction) const {
  if (const auto pool = pools_.find(id.pool_id()); pool != pools_.end()) {
    for (const std::string& name : pool->second.rbegin()->second) {
      const Slice& slice = slices_.find(name)->second;
      const auto taints = slice.taints.find(id.device);
      if (taints == slice.taints.end()) continue;
      for (const device::Taint& taint : taints->second) {
        if (const auto at = EndOf(taint, tolerations)) Merge(eviction, *at, "");
      }
    }
  }
  for (const auto& [name, rule] : rules_) {
    if (!rule.MatchesPool(id.pool_id()) || !rule.MatchesDevice(id.device)) continue;
    if (const auto at = EndOf(rule.taint, tolerations)) Merge(eviction, *at, name);
  }
}

std::size_t TaintedDevices::CountSelected(const device::TaintRule& rule, api::Value claim) {
  std::size_t count = 0;
  for (api::Value result : claim["status"]["allocation"]["devices"]["results"].elements()) {
    const device::DeviceId id = IdOf(result);
    if (rule.MatchesPool(id.pool_id()) && rule.MatchesDevice(id.device)) ++count;
  }
  return count;
}

}  // namespace drakkar::controllers
