#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/cache/placements.h"
#include "scheduler/cache/topology_domains.h"
#include "scheduler/plugins/pod_topology_spread/spread_constraint.h"

namespace drakkar::scheduler {

// For each node, its domain and how many of its pods a constraint counts. Both are cached, so a
// repeated query only processes the nodes that changed since.
//
// At most kMaxSelectors selectors, each with a number per node. Beyond that all are dropped.
class TopologyCounts {
 public:
  static constexpr std::size_t kMaxSelectors = 128;

  TopologyCounts(const NodeTable& nodes, const Placements& placements)
      : nodes_(nodes), placements_(placements), domains_(nodes) {}

  // Valid until the next call.
  const TopologyDomains& DomainsOf(const std::string& topology_key) {
    return domains_.DomainsOf(topology_key);
  }
  // Indexed by node. Valid until the next call.
  const std::vector<std::int64_t>& PodsPerNode(const SpreadConstraint& constraint,
                                               std::string_view ns);

 private:
  struct Selector {
    std::vector<std::int64_t> counts;
    std::uint64_t version = 0;
  };

  const NodeTable& nodes_;
  const Placements& placements_;
  TopologyDomainCache domains_;
  std::map<std::string, Selector> selectors_;  // by namespace and text
};

}  // namespace drakkar::scheduler
