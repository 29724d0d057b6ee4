#include "controllers/node_lifecycle/zones.h"

#include <algorithm>

#include "base/text/text.h"
#include "controllers/node_lifecycle/planner.h"

namespace drakkar::controllers {

std::string Zones::KeyOf(const api::Object& node) {
  const api::Value labels = node["metadata"]["labels"];
  return StrCat(labels.Entry("topology.kubernetes.io/region").str(), ":",
                labels.Entry("topology.kubernetes.io/zone").str());
}

void Zones::Begin() {
  for (auto& [name, zone] : zones_) zone.ready = zone.not_ready = 0;
  down_.clear();
}

void Zones::Count(const api::Object& node) {
  const std::string_view ready = ReadinessOf(node);
  if (ready.empty()) return;
  if (ready != "True") down_.emplace(node.name());
  if (node["metadata"]["labels"].Entry("node.kubernetes.io/exclude-disruption").exists()) return;
  Zone& zone = zones_[KeyOf(node)];
  ++(ready == "True" ? zone.ready : zone.not_ready);
}

Zones::Change Zones::End() {
  std::erase_if(zones_, [](const auto& each) {
    return each.second.ready == 0 && each.second.not_ready == 0;
  });
  Change change{.were_all_down = all_down_};
  all_down_ = !zones_.empty() &&
              std::ranges::all_of(zones_, [](const auto& each) { return each.second.ready == 0; });
  change.all_down = all_down_;
  return change;
}

Duration Zones::IntervalOf(const Zone& zone) {
  const int size = zone.ready + zone.not_ready;
  const bool partly_down = zone.ready > 0 && zone.not_ready > 2 &&
                           static_cast<double>(zone.not_ready) / size >= kThreshold;
  if (!partly_down) return kEvictionInterval;
  return size > kLargeZone ? kSlowEvictionInterval : Duration::max();
}

Duration Zones::UntilEviction(const api::Object& node, MonotonicTime now) const {
  if (all_down_) return Duration::max();
  const auto found = zones_.find(KeyOf(node));
  if (found == zones_.end()) return Duration::zero();
  if (IntervalOf(found->second) == Duration::max()) return Duration::max();
  return std::max(found->second.next - now, Duration::zero());
}

void Zones::Evicted(const api::Object& node, MonotonicTime now) {
  Zone& zone = zones_[KeyOf(node)];
  zone.next = now + IntervalOf(zone);
}

}  // namespace drakkar::controllers
