#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/cache/node_table.h"

namespace drakkar::scheduler {

// The domain of every node under one topology key.
struct TopologyDomains {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> of_node;  // by node index; kNone: the node lacks the label
  NodeSet nodes;                       // nodes that have the label
  std::size_t count = 0;  // domain numbers are below this; some domains may have no node
};

// The domains of each topology key that was asked for, cached, so that a repeated question only
// processes the nodes that changed since. Beyond kMaxKeys keys all are dropped.
class TopologyDomainCache {
 public:
  static constexpr std::size_t kMaxKeys = 64;

  explicit TopologyDomainCache(const NodeTable& nodes) : nodes_(nodes) {}

  // Valid until the next call.
  const TopologyDomains& DomainsOf(const std::string& topology_key);

 private:
  struct Key {
    TopologyDomains domains;
    std::map<std::string, std::uint32_t, std::less<>> numbers;  // by value
    std::uint64_t version = 0;
  };

  const NodeTable& nodes_;
  std::map<std::string, Key, std::less<>> keys_;
};

}  // namespace drakkar::scheduler
