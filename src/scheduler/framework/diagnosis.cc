#include "scheduler/framework/diagnosis.h"

#include <algorithm>
#include <vector>

#include "base/text/text.h"
#include "scheduler/framework/status.h"

namespace drakkar::scheduler {

std::string Status::Message() const {
  return Join(reasons, ", ");
}

void Diagnosis::Count(std::string_view reason, std::size_t nodes) {
  const auto found = reasons_.find(reason);
  if (found != reasons_.end()) {
    found->second += nodes;
  } else {
    reasons_.emplace(std::string(reason), nodes);
  }
}

std::string Diagnosis::Message(std::size_t node_count) const {
  if (node_count == 0 && for_all_nodes_.empty()) return "no nodes available to schedule pods";
  std::string text = StrCat("0/", node_count, " nodes are available:");
  if (!for_all_nodes_.empty()) {
    text += StrCat(" ", for_all_nodes_, ".");
  } else {
    std::vector<std::string> parts;
    for (const auto& [reason, count] : reasons_) parts.push_back(StrCat(count, " ", reason));
    std::sort(parts.begin(), parts.end());  // as text, like Kubernetes
    if (!parts.empty()) text += StrCat(" ", Join(parts, ", "), ".");
  }
  if (!post_filter_.empty()) text += StrCat(" ", post_filter_);
  return text;
}

}  // namespace drakkar::scheduler
