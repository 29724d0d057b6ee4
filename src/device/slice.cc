#include "device/slice.h"

namespace drakkar::device {

Result<bool> Matches(const NodeTarget& target, const Node& node) {
  if (!target.node_name.empty()) return target.node_name == node.name;
  if (target.all_nodes) return true;
  if (target.selector) return Matches(*target.selector, node);
  return false;
}

bool SkipNodeOperations::SkipsAny() const {
  if (const bool* all = std::get_if<bool>(&form)) return *all;
  if (const auto* list = std::get_if<std::vector<std::string>>(&form)) return !list->empty();
  return false;
}

}  // namespace drakkar::device
