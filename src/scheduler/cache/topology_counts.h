#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/cache/node_table.h"
#include "scheduler/cache/placements.h"

namespace drakkar::scheduler {

// The domain of every node under one topology key.
struct TopologyDomains {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> of_node;  // by node index; kNone: the node lacks the label
  NodeSet nodes;                       // nodes that have the label
  std::size_t count = 0;  // domain numbers are below this; some domains may have no node
};

// For each node, its domain and how many of its pods a rule counts. Both are cached, so a repeated
// query only processes the nodes that changed since.
//
// Limits: kMaxKeys topology keys and kMaxRules rules, each with a number per node. Beyond a limit
// all are dropped.
class TopologyCounts {
 public:
  static constexpr std::size_t kMaxKeys = 64;
  static constexpr std::size_t kMaxRules = 128;

  TopologyCounts(const NodeTable& nodes, const Placements& placements)
      : nodes_(nodes), placements_(placements) {}

  // Valid until the next call.
  const TopologyDomains& DomainsOf(const std::string& topology_key);
  // How many pods of each node `counts` accepts, indexed by node. Calls with the same `rule` must
  // have the same `counts`. Valid until the next call.
  const std::vector<std::int64_t>& PodsPerNode(const std::string& rule,
                                               const std::function<bool(const PodInfo&)>& counts);

 private:
  struct Key {
    TopologyDomains domains;
    std::map<std::string, std::uint32_t, std::less<>> numbers;  // by value
    std::uint64_t version = 0;
  };
  struct Rule {
    std::vector<std::int64_t> counts;
    std::uint64_t version = 0;
  };

  const NodeTable& nodes_;
  const Placements& placements_;
  std::map<std::string, Key, std::less<>> keys_;
  std::map<std::string, Rule, std::less<>> rules_;
};

}  // namespace drakkar::scheduler
