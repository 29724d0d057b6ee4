#include "scheduler/plugins/node_resources/node_resources_balanced.h"

#include <algorithm>
#include <cmath>

namespace drakkar::scheduler {

bool NodeResourcesBalanced::Score(Cycle& cycle, std::span<const NodeIndex> nodes,
                                  std::span<std::int64_t> scores) {
  const ResourceAmounts& pod = cycle.pod->requests;
  if (pod.milli_cpu == 0 && pod.memory == 0) return false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeIndex node = nodes[i];
    const auto fraction = [](std::int64_t capacity, std::int64_t free, std::int64_t more) {
      if (capacity <= 0) return 0.0;
      return std::min(1.0,
                      static_cast<double>(capacity - free + more) / static_cast<double>(capacity));
    };
    const double cpu =
        fraction(nodes_.allocatable_cpu()[node], nodes_.free_cpu()[node], pod.milli_cpu);
    const double memory =
        fraction(nodes_.allocatable_memory()[node], nodes_.free_memory()[node], pod.memory);
    // The standard deviation of two values is half their distance.
    scores[i] = static_cast<std::int64_t>((1 - std::fabs(cpu - memory) / 2) * 100);
  }
  return true;
}

}  // namespace drakkar::scheduler
