#pragma once

#include <set>
#include <string>

#include "scheduler/cache/node_table.h"

namespace drakkar::scheduler {

// The nominated pods that block another pod, for the message about that pod. Names the first
// kMaxNamed of them.
class RoomKeepers {
 public:
  static constexpr std::size_t kMaxNamed = 3;

  // Adds the pods for which room on the node is reserved.
  void AddOf(const NodeTable& nodes, NodeIndex node, const PodInfo& pod);
  // "room is kept for nominated pod default/a"
  std::string ToText() const;

 private:
  std::set<std::string> names_;
  bool more_ = false;
};

}  // namespace drakkar::scheduler
