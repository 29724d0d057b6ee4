#include "dashboard/model/history.h"

#include <algorithm>

#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::dashboard {
namespace {

using answers::DeviceEntry;
using api::Value;

std::string TaintsOf(const DeviceEntry& entry) {
  std::vector<std::string> taints;
  for (const device::Taint& taint : entry.taints) {
    if (!answers::PreventsAllocation(taint)) continue;
    taints.push_back(
        StrCat(taint.key, taint.value.empty() ? "" : "=", taint.value, ":", taint.effect));
  }
  return Join(taints, ", ");
}

// When the newest of the taints was added; empty if unknown.
std::string TaintedSince(const DeviceEntry& entry) {
  std::string since;
  for (const device::Taint& taint : entry.taints) {
    if (answers::PreventsAllocation(taint)) since = std::max(since, taint.time_added);
  }
  return since;
}

std::int64_t SecondsOf(WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

}  // namespace

std::int64_t Percentile(std::vector<std::int64_t> values, int percent) {
  if (values.empty()) return 0;
  const std::size_t index =
      std::min(values.size() - 1, values.size() * static_cast<std::size_t>(percent) / 100);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index),
                   values.end());
  return values[index];
}

void History::Observe(const answers::Snapshot& snapshot, const answers::DeviceTable& table) {
  ++round_;
  ObserveHealth(snapshot, table);
  ObservePods(snapshot);
}

void History::AddHealth(HealthEvent event) {
  health_.push_back(std::move(event));
  if (health_.size() > kMaxHealthEvents) health_.pop_front();
}

void History::ObserveHealth(const answers::Snapshot& snapshot, const answers::DeviceTable& table) {
  const bool first = round_ == 1;
  const std::string now = api::FormatTime(snapshot.now);
  std::vector<HealthEvent> events;
  for (const DeviceEntry& entry : table.devices()) {
    Known& known = devices_[entry.id.ToString()];
    const bool is_new = known.seen == 0;
    known.seen = round_;
    const auto add = [&](std::string at, std::string what, std::string message) {
      events.push_back({at.empty() ? now : std::move(at), entry.id, entry.node, std::move(what),
                        std::move(message)});
    };
    const std::string& health = entry.health.health;
    // A device that was not known before is reported only if it has a problem.
    if (is_new ? health == "Unhealthy" : known.health != health) {
      const bool known_health = is_new || known.health != "Unknown" || health != "Healthy";
      if (known_health) add(entry.health.since, health, entry.health.message);
    }
    known.health = health;
    std::string taints = TaintsOf(entry);
    if (taints != known.taints) {
      if (taints.empty()) {
        add("", "Untainted", known.taints);
      } else {
        add(TaintedSince(entry), "Tainted", taints);
      }
    }
    known.taints = std::move(taints);
  }
  // Times that drivers report may lie before what is already recorded.
  std::stable_sort(events.begin(), events.end(),
                   [](const HealthEvent& a, const HealthEvent& b) { return a.at < b.at; });
  for (HealthEvent& event : events) AddHealth(std::move(event));
  if (!first && devices_.size() > table.devices().size()) {
    std::erase_if(devices_, [this](const auto& each) { return each.second.seen != round_; });
  }
}

void History::AddScheduled(std::int64_t at, std::int64_t wait, std::int64_t now) {
  const std::int64_t start = at - at % kSlotSeconds;
  const std::int64_t oldest = now - kSlotSeconds * static_cast<std::int64_t>(kMaxSlots);
  if (start <= oldest || start > now + kSlotSeconds) return;
  auto slot = std::lower_bound(
      slots_.begin(), slots_.end(), start,
      [](const ThroughputSlot& each, std::int64_t value) { return each.start < value; });
  if (slot == slots_.end() || slot->start != start) slot = slots_.insert(slot, {.start = start});
  ++slot->scheduled;
  if (slot->wait_seconds.size() < kMaxWaits) {
    slot->wait_seconds.push_back(wait);
  } else if (const std::uint64_t index = random_.Below(slot->scheduled); index < kMaxWaits) {
    slot->wait_seconds[index] = wait;
  }
}

void History::ObservePods(const answers::Snapshot& snapshot) {
  const std::int64_t now = SecondsOf(snapshot.now);
  std::unordered_set<std::string> scheduled;
  scheduled.reserve(snapshot.pods.size());
  for (const api::ObjectPtr& pod : snapshot.pods) {
    if ((*pod)["spec"]["nodeName"].str().empty()) continue;
    std::string uid(pod->uid());
    const bool known = scheduled_.contains(uid);
    scheduled.insert(std::move(uid));
    if (known) continue;
    for (Value condition : (*pod)["status"]["conditions"].elements()) {
      if (condition["type"].str() != "PodScheduled" || condition["status"].str() != "True") {
        continue;
      }
      const Result<WallTime> at = api::ParseTime(condition["lastTransitionTime"].str());
      const Result<WallTime> created =
          api::ParseTime((*pod)["metadata"]["creationTimestamp"].str());
      if (!at.ok() || !created.ok()) continue;
      AddScheduled(SecondsOf(*at), std::max<std::int64_t>(SecondsOf(*at) - SecondsOf(*created), 0),
                   now);
    }
  }
  scheduled_ = std::move(scheduled);
  const std::int64_t oldest = now - kSlotSeconds * static_cast<std::int64_t>(kMaxSlots);
  while (!slots_.empty() && slots_.front().start <= oldest) slots_.pop_front();
}

}  // namespace drakkar::dashboard
