#include "scheduler/cache/topology_counts.h"

namespace drakkar::scheduler {

const TopologyDomains& TopologyCounts::DomainsOf(const std::string& topology_key) {
  auto found = keys_.find(topology_key);
  if (found == keys_.end()) {
    if (keys_.size() >= kMaxKeys) keys_.clear();
    found = keys_.try_emplace(topology_key).first;
  }
  Key& entry = found->second;
  TopologyDomains& domains = entry.domains;
  // Values that no node has any more are kept until they are as many as the nodes.
  if (entry.numbers.size() > 2 * nodes_.size() + 64) entry = Key();
  domains.of_node.resize(nodes_.size(), TopologyDomains::kNone);
  domains.nodes.Resize(nodes_.size());
  if (entry.version == nodes_.label_version()) return domains;
  const std::vector<std::uint64_t>& versions = nodes_.label_versions();
  for (NodeIndex node = 0; node < versions.size(); ++node) {
    if (versions[node] <= entry.version) continue;
    std::uint32_t& domain = domains.of_node[node];
    domain = TopologyDomains::kNone;
    if (nodes_.known().Contains(node)) {
      const api::Value labels = nodes_.object(node)->root()["metadata"]["labels"];
      const api::Value value = labels.Entry(topology_key);
      if (value.is_string()) {
        const auto next = static_cast<std::uint32_t>(entry.numbers.size());
        domain = entry.numbers.try_emplace(std::string(value.str()), next).first->second;
      }
    }
    domains.nodes.Put(node, domain != TopologyDomains::kNone);
  }
  domains.count = entry.numbers.size();
  entry.version = nodes_.label_version();
  return domains;
}

const std::vector<std::int64_t>& TopologyCounts::PodsPerNode(
    const std::string& rule, const std::function<bool(const PodInfo&)>& counts) {
  auto found = rules_.find(rule);
  if (found == rules_.end()) {
    if (rules_.size() >= kMaxRules) rules_.clear();
    found = rules_.try_emplace(rule).first;
  }
  Rule& entry = found->second;
  entry.counts.resize(nodes_.size(), 0);
  if (entry.version == placements_.pods_version()) return entry.counts;
  const std::vector<std::uint64_t>& versions = placements_.pods_versions();
  for (NodeIndex node = 0; node < versions.size(); ++node) {
    if (versions[node] <= entry.version) continue;
    std::int64_t count = 0;
    for (const PodInfoPtr& pod : placements_.PodsOn(node)) {
      if (counts(*pod)) ++count;
    }
    entry.counts[node] = count;
  }
  entry.version = placements_.pods_version();
  return entry.counts;
}

}  // namespace drakkar::scheduler
