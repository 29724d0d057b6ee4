#include "scheduler/cache/room_keepers.h"

#include <vector>

#include "base/text/text.h"

namespace drakkar::scheduler {

void RoomKeepers::AddOf(const NodeTable& nodes, NodeIndex node, const PodInfo& pod) {
  const auto* nominated = nodes.FindNominated(node);
  if (nominated == nullptr) return;
  for (const PodInfoPtr& other : *nominated) {
    if (!nodes.KeepsRoomFrom(*other, pod) || names_.contains(other->key)) continue;
    if (names_.size() < kMaxNamed) {
      names_.insert(other->key);
    } else {
      more_ = true;
    }
  }
}

std::string RoomKeepers::ToText() const {
  const std::vector<std::string> names(names_.begin(), names_.end());
  return StrCat("room is kept for nominated pod", names.size() == 1 ? " " : "s ", Join(names, ", "),
                more_ ? " and others" : "");
}

}  // namespace drakkar::scheduler
