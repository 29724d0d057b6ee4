#include "node/eviction/eviction_manager.h"

#include <algorithm>
#include <utility>

#include "api/meta/bounded_seconds.h"
#include "base/text/text.h"
#include "node/eviction/eviction_rank.h"
#include "node/eviction/storage_limits.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.eviction");

bool ToleratesMemoryPressure(api::Value pod) {
  for (api::Value each : pod["spec"]["tolerations"].elements()) {
    const std::string_view key = each["key"].str();
    const std::string_view effect = each["effect"].str();
    if (!effect.empty() && effect != "NoSchedule") continue;
    const bool exists = each["operator"].str() == "Exists";
    if (key.empty() && exists) return true;
    if (key == "node.kubernetes.io/memory-pressure" && (exists || each["value"].str().empty())) {
      return true;
    }
  }
  return false;
}

}  // namespace

void EvictionManager::Start() {
  Look();
}

// Measure pods only if one of them has a limit: that takes longer than measuring the machine.
void EvictionManager::EnforceLimits() {
  const auto limited = [](const api::ObjectPtr& pod) {
    return LimitsEphemeralStorage(pod->root());
  };
  if (std::ranges::none_of(options_.active_pods(), limited)) return;
  options_.read_all(lifetime_.Guard([this](Result<NodeUsagePtr> usage) {
    if (!usage.ok()) return;
    for (const api::ObjectPtr& pod : options_.active_pods()) {
      auto verdict = ExceedsStorageLimit(pod->root(), **usage);
      if (!verdict) continue;
      kLog.Warning("evicted pod", {{"pod", pod->qualified_name()}, {"reason", verdict->message}});
      options_.evict(std::string(pod->uid()), *std::move(verdict), kHardGrace);
    }
  }));
}

void EvictionManager::Next(Duration delay) {
  timer_ = options_.loop.RunAfter(delay, [this] { Look(); });
}

std::optional<PodVerdict> EvictionManager::Admit(api::Value pod) const {
  if (conditions_.empty() || IsCritical(pod)) return std::nullopt;
  if (conditions_.size() == 1 && HasCondition("MemoryPressure")) {
    if (pod["status"]["qosClass"].str() != "BestEffort") return std::nullopt;
    if (ToleratesMemoryPressure(pod)) return std::nullopt;
  }
  const std::vector<std::string> names(conditions_.begin(), conditions_.end());
  return PodVerdict{.reason = "Evicted",
                    .message = StrCat("The node had condition: [", Join(names, " "), "]. ")};
}

void EvictionManager::Look() {
  EnforceLimits();
  if (options_.thresholds.empty()) return Next(kEvery);
  options_.read_machine(lifetime_.Guard([this](Result<NodeUsagePtr> usage) {
    if (!usage.ok()) {
      kLog.Warning("could not read the node's usage", {{"err", usage.error().message}});
      return Next(kEvery);
    }
    const std::optional<Threshold> threshold = Assess(Observe(**usage));
    if (!threshold) return Next(kEvery);
    kLog.Warning("node is low on a resource", {{"resource", ResourceOf(threshold->signal)},
                                               {"signal", SignalName(threshold->signal)}});
    if (options_.on_reclaim) options_.on_reclaim(ResourceOf(threshold->signal));
    Act(*threshold, false);
  }));
}

std::optional<Threshold> EvictionManager::Assess(const Observations& observations) {
  const MonotonicTime now = options_.loop.clock().Monotonic();
  std::map<std::size_t, MonotonicTime> first;
  for (std::size_t i = 0; i < options_.thresholds.size(); ++i) {
    const Threshold& threshold = options_.thresholds[i];
    const auto seen = observations.find(threshold.signal);
    if (seen == observations.end()) continue;
    // Once met, a threshold stays met until its minimum reclaim is available too.
    if (!IsMet(threshold, seen->second, false) &&
        !(met_.contains(i) && IsMet(threshold, seen->second, true))) {
      continue;
    }
    const auto before = first_met_.find(i);
    first[i] = before == first_met_.end() ? now : before->second;
    last_observed_[std::string(ConditionOf(threshold.signal))] = now;
  }
  first_met_ = std::move(first);
  std::set<std::string> conditions;
  for (const auto& [condition, when] : last_observed_) {
    if (when == now || now - when < options_.transition_period) conditions.insert(condition);
  }
  met_.clear();
  std::optional<Threshold> chosen;
  for (const auto& [i, since] : first_met_) {
    const Threshold& threshold = options_.thresholds[i];
    if (now - since < threshold.grace) continue;
    met_.insert(i);
    // Memory first: a machine without free memory can do nothing else.
    const bool memory = ResourceOf(threshold.signal) == "memory";
    if (!chosen || (memory && ResourceOf(chosen->signal) != "memory") ||
        (ResourceOf(threshold.signal) == ResourceOf(chosen->signal) && threshold.is_hard &&
         !chosen->is_hard)) {
      chosen = threshold;
    }
  }
  if (conditions != conditions_) {
    conditions_ = std::move(conditions);
    if (options_.on_conditions) options_.on_conditions();
  }
  return chosen;
}

void EvictionManager::Act(const Threshold& threshold, bool freed_images) {
  const bool disk = ConditionOf(threshold.signal) == "DiskPressure";
  if (disk && !freed_images && options_.free_images) {
    return options_.free_images(lifetime_.Guard([this, threshold] { Act(threshold, true); }));
  }
  options_.read_all(lifetime_.Guard([this, threshold, freed_images](Result<NodeUsagePtr> usage) {
    if (!usage.ok()) {
      kLog.Warning("could not read the usage of pods", {{"err", usage.error().message}});
      return Next(kEvery);
    }
    const Observations observations = Observe(**usage);
    const auto seen = observations.find(threshold.signal);
    if (seen == observations.end()) return Next(kEvery);
    // Removing images may have been enough.
    if (freed_images && !IsMet(threshold, seen->second, true)) return Next(kEvery);
    Evict(threshold, **usage);
  }));
}

void EvictionManager::Evict(const Threshold& threshold, const NodeUsage& usage) {
  const std::vector<api::ObjectPtr> ranked =
      RankForEviction(options_.active_pods(), usage, threshold.signal);
  const Observations observations = Observe(usage);
  for (const api::ObjectPtr& pod : ranked) {
    if (IsCritical(pod->root())) continue;
    Duration grace = kHardGrace;
    if (!threshold.is_hard) {
      const std::int64_t own = (*pod)["spec"]["terminationGracePeriodSeconds"].integer(30);
      grace = api::BoundedSeconds(std::min(options_.max_pod_grace_seconds, own));
    }
    const std::string uid(pod->uid());
    kLog.Warning("evicted pod",
                 {{"pod", pod->qualified_name()}, {"resource", ResourceOf(threshold.signal)}});
    options_.evict(uid,
                   {.reason = "Evicted",
                    .message = EvictionMessage(pod->root(), usage, threshold,
                                               observations.at(threshold.signal)),
                    .is_disruption = true},
                   grace);
    return WaitForEnd(uid, options_.loop.clock().Monotonic() + kWaitForEnd);
  }
  kLog.Error("thresholds are met, but there is no pod to evict",
             {{"resource", ResourceOf(threshold.signal)}});
  Next(kEvery);
}

void EvictionManager::WaitForEnd(const std::string& uid, MonotonicTime deadline) {
  if (options_.is_gone(uid) || options_.loop.clock().Monotonic() >= deadline) return Look();
  timer_ =
      options_.loop.RunAfter(kLookForEnd, [this, uid, deadline] { WaitForEnd(uid, deadline); });
}

}  // namespace drakkar::node
