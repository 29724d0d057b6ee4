#include "scheduler/cache/topology_domains.h"

namespace drakkar::scheduler {

const TopologyDomains& TopologyDomainCache::DomainsOf(const std::string& topology_key) {
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

}  // namespace drakkar::scheduler
