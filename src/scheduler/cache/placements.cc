#include "scheduler/cache/placements.h"

#include <utility>

namespace drakkar::scheduler {
namespace {

// Of one resource at least, or a port.
bool TakesLess(const PodInfo& now, const PodInfo& before) {
  ResourceAmounts most = now.requests;
  most.RaiseTo(before.requests);
  return most != now.requests || now.host_ports.size() < before.host_ports.size();
}

}  // namespace

NodeIndex Placements::SetNode(const api::ObjectPtr& node) {
  const bool is_new = table_.Find(node->name()) == kNoNode;
  const NodeIndex at = table_.SetNode(node);
  if (!is_new) return at;
  if (const auto found = strays_.find(node->name()); found != strays_.end()) {
    for (const std::string& uid : found->second) table_.AddPod(at, *pods_.at(uid).pod);
    strays_.erase(found);
  }
  for (const auto& [uid, entry] : nominated_) {
    if (entry.node_name == node->name()) table_.AddNominated(at, entry.pod);
  }
  return at;
}

void Placements::RemoveNode(std::string_view name) {
  if (table_.Find(name) == kNoNode) return;
  table_.RemoveNode(name);
  std::set<std::string> left;
  for (const auto& [uid, entry] : pods_) {
    if (entry.node_name == name) left.insert(uid);
  }
  if (!left.empty()) strays_[std::string(name)] = std::move(left);
}

void Placements::Count(const Entry& entry, bool add) {
  const NodeIndex node = table_.Find(entry.node_name);
  if (node == kNoNode) {
    if (add) {
      strays_[entry.node_name].insert(entry.pod->uid);
    } else if (const auto found = strays_.find(entry.node_name); found != strays_.end()) {
      found->second.erase(entry.pod->uid);
      if (found->second.empty()) strays_.erase(found);
    }
    return;
  }
  if (add) {
    table_.AddPod(node, *entry.pod);
  } else {
    table_.RemovePod(node, *entry.pod);
  }
}

void Placements::Put(Entry entry) {
  const auto [at, is_new] = pods_.try_emplace(entry.pod->uid);
  if (!is_new) {
    Count(at->second, false);
    assumed_count_ -= at->second.assumed ? 1 : 0;
  }
  at->second = std::move(entry);
  assumed_count_ += at->second.assumed ? 1 : 0;
  Count(at->second, true);
}

void Placements::Assume(PodInfoPtr pod, std::string_view node_name) {
  Put({std::move(pod), std::string(node_name), true});
}

void Placements::Forget(const std::string& uid) {
  if (IsAssumed(uid)) Remove(uid);
}

bool Placements::Confirm(PodInfoPtr pod) {
  std::string node_name = pod->node_name;
  const auto found = pods_.find(pod->uid);
  if (found != pods_.end() && found->second.node_name == node_name &&
      found->second.pod->requests == pod->requests &&
      found->second.pod->scoring_requests == pod->scoring_requests &&
      found->second.pod->host_ports.size() == pod->host_ports.size()) {
    // The usual case, a status change or our own binding coming back: nothing is counted anew. The
    // first PodInfo stays, because it is what was counted.
    assumed_count_ -= std::exchange(found->second.assumed, false) ? 1 : 0;
    return false;
  }
  // Also where it was assumed on another node than it is on now.
  const bool freed = found != pods_.end() &&
                     (found->second.node_name != node_name || TakesLess(*pod, *found->second.pod));
  Put({std::move(pod), std::move(node_name), false});
  return freed;
}

void Placements::Remove(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  Count(found->second, false);
  assumed_count_ -= found->second.assumed ? 1 : 0;
  pods_.erase(found);
}

bool Placements::IsAssumed(const std::string& uid) const {
  const auto found = pods_.find(uid);
  return found != pods_.end() && found->second.assumed;
}

const std::string* Placements::FindNodeOf(const std::string& uid) const {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : &found->second.node_name;
}

bool Placements::Nominate(PodInfoPtr pod, std::string node_name) {
  const auto before = nominated_.find(pod->uid);
  const bool moved = before != nominated_.end() && before->second.node_name != node_name;
  Denominate(pod->uid);
  if (const NodeIndex node = table_.Find(node_name); node != kNoNode) {
    table_.AddNominated(node, pod);
  }
  const std::string uid = pod->uid;
  nominated_[uid] = {std::move(pod), std::move(node_name), false};
  return moved;
}

bool Placements::Denominate(const std::string& uid) {
  const auto found = nominated_.find(uid);
  if (found == nominated_.end()) return false;
  if (const NodeIndex node = table_.Find(found->second.node_name); node != kNoNode) {
    table_.RemoveNominated(node, uid);
  }
  nominated_.erase(found);
  return true;
}

std::string Placements::NominatedNode(const std::string& uid) const {
  const auto found = nominated_.find(uid);
  return found == nominated_.end() ? std::string() : found->second.node_name;
}

}  // namespace drakkar::scheduler
