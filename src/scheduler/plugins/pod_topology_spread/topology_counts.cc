#include "scheduler/plugins/pod_topology_spread/topology_counts.h"

#include "base/text/text.h"

namespace drakkar::scheduler {

const std::vector<std::int64_t>& TopologyCounts::PodsPerNode(const SpreadConstraint& constraint,
                                                             std::string_view ns) {
  const std::string text = StrCat(ns, constraint.selector.matches_nothing() ? "\n!" : "\n",
                                  constraint.selector.ToString());
  auto found = selectors_.find(text);
  if (found == selectors_.end()) {
    if (selectors_.size() >= kMaxSelectors) selectors_.clear();
    found = selectors_.try_emplace(text).first;
  }
  Selector& entry = found->second;
  entry.counts.resize(nodes_.size(), 0);
  if (entry.version == placements_.pods_version()) return entry.counts;
  const std::vector<std::uint64_t>& versions = placements_.pods_versions();
  for (NodeIndex node = 0; node < versions.size(); ++node) {
    if (versions[node] <= entry.version) continue;
    std::int64_t count = 0;
    for (const PodInfoPtr& pod : placements_.PodsOn(node)) {
      if (constraint.Counts(*pod->pod, ns)) ++count;
    }
    entry.counts[node] = count;
  }
  entry.version = placements_.pods_version();
  return entry.counts;
}

}  // namespace drakkar::scheduler
