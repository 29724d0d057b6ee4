#include "controllers/workload/pods_by_node.h"

namespace drakkar::controllers {

namespace {

const PodsByNode::Pods kNone;

std::string_view NodeOf(const api::Object& pod) {
  return pod["spec"]["nodeName"].str();
}

}  // namespace

PodsByNode::PodsByNode(client::Informer& pods) : informer_(pods) {
  const auto put = [this](const api::ObjectPtr& pod) {
    if (!NodeOf(*pod).empty()) by_node_[std::string(NodeOf(*pod))][pod->qualified_name()] = pod;
  };
  pods.AddHandlers({.on_add = put,
                    .on_update =
                        [this, put](const api::ObjectPtr& before, const api::ObjectPtr& after) {
                          if (NodeOf(*before) != NodeOf(*after)) Remove(before);
                          put(after);
                        },
                    .on_delete = [this](const api::ObjectPtr& pod) { Remove(pod); }});
}

void PodsByNode::Remove(const api::ObjectPtr& pod) {
  const auto found = by_node_.find(NodeOf(*pod));
  if (found == by_node_.end()) return;
  found->second.erase(pod->qualified_name());
  if (found->second.empty()) by_node_.erase(found);
}

const PodsByNode::Pods& PodsByNode::On(std::string_view node) const {
  const auto found = by_node_.find(node);
  return found == by_node_.end() ? kNone : found->second;
}

}  // namespace drakkar::controllers
