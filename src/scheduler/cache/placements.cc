#include "scheduler/cache/placements.h"

#include <algorithm>
#include <utility>

#include "base/result/check.h"

namespace drakkar::scheduler {
namespace {

// Fewer host ports, or less of at least one resource.
bool TakesLess(const PodInfo& now, const PodInfo& before) {
  ResourceAmounts most = now.requests;
  most.RaiseTo(before.requests);
  return most != now.requests || now.host_ports.size() < before.host_ports.size();
}

bool HaveSameLabels(const PodInfo& a, const PodInfo& b) {
  return a.pod->is_being_deleted() == b.pod->is_being_deleted() &&
         api::Equal(a.labels(), b.labels());
}

std::vector<PodInfoPtr>::iterator FindIn(std::vector<PodInfoPtr>& pods, const PodInfo& pod) {
  const auto found = std::find_if(pods.begin(), pods.end(),
                                  [&](const PodInfoPtr& each) { return each.get() == &pod; });
  CHECK(found != pods.end());
  return found;
}

}  // namespace

NodeIndex Placements::SetNode(const api::ObjectPtr& node) {
  const bool is_new = table_.Find(node->name()) == kNoNode;
  const NodeIndex at = table_.SetNode(node);
  if (!is_new) return at;
  if (by_node_.size() < table_.size()) {
    by_node_.resize(table_.size());
    pods_versions_.resize(table_.size(), 0);
    affinity_versions_.resize(table_.size(), 0);
  }
  Note(at);
  NoteAffinity(at);
  if (const auto found = strays_.find(node->name()); found != strays_.end()) {
    for (const std::string& uid : found->second) {
      const PodInfoPtr& pod = pods_.at(uid).pod;
      table_.AddPod(at, *pod);
      by_node_[at].push_back(pod);
    }
    strays_.erase(found);
  }
  for (const auto& [uid, entry] : nominated_) {
    if (entry.node_name == node->name()) table_.AddNominated(at, entry.pod);
  }
  return at;
}

void Placements::RemoveNode(std::string_view name) {
  const NodeIndex at = table_.Find(name);
  if (at == kNoNode) return;
  table_.RemoveNode(name);
  by_node_[at].clear();
  Note(at);
  NoteAffinity(at);
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
  std::vector<PodInfoPtr>& pods = by_node_[node];
  if (add) {
    table_.AddPod(node, *entry.pod);
    pods.push_back(entry.pod);
  } else {
    table_.RemovePod(node, *entry.pod);
    *FindIn(pods, *entry.pod) = std::move(pods.back());
    pods.pop_back();
  }
  Note(node);
  if (entry.pod->has_pod_affinity) NoteAffinity(node);
}

void Placements::ForgetPriority(const Entry& entry) {
  const auto found = priorities_.find(entry.pod->priority);
  if (--found->second == 0) priorities_.erase(found);
}

void Placements::Put(Entry entry) {
  const auto [at, is_new] = pods_.try_emplace(entry.pod->uid);
  if (!is_new) {
    Count(at->second, false);
    ForgetPriority(at->second);
    assumed_count_ -= at->second.assumed ? 1 : 0;
  }
  at->second = std::move(entry);
  ++priorities_[at->second.pod->priority];
  assumed_count_ += at->second.assumed ? 1 : 0;
  Count(at->second, true);
}

void Placements::Assume(PodInfoPtr pod, std::string_view node_name) {
  Put({std::move(pod), std::string(node_name), true});
}

void Placements::Forget(const std::string& uid) {
  if (IsAssumed(uid)) Remove(uid);
}

Placements::Change Placements::Confirm(PodInfoPtr pod) {
  std::string node_name = pod->node_name;
  const auto found = pods_.find(pod->uid);
  Change change;
  if (found == pods_.end()) {
    change.is_new = true;
    Put({std::move(pod), std::move(node_name), false});
    return change;
  }
  Entry& entry = found->second;
  change.is_new = entry.assumed;
  change.relabelled = !HaveSameLabels(*entry.pod, *pod);
  if (entry.node_name == node_name && entry.pod->requests == pod->requests &&
      entry.pod->scoring_requests == pod->scoring_requests &&
      entry.pod->host_ports.size() == pod->host_ports.size()) {
    // The usual case: a status change, or our own binding from the watch. Nothing is recounted.
    assumed_count_ -= std::exchange(entry.assumed, false) ? 1 : 0;
    if (!change.relabelled) return change;
    ForgetPriority(entry);
    ++priorities_[pod->priority];
    if (const NodeIndex node = table_.Find(node_name); node != kNoNode) {
      *FindIn(by_node_[node], *entry.pod) = pod;
      Note(node);
      if (pod->has_pod_affinity) NoteAffinity(node);
    }
    entry.pod = std::move(pod);
    return change;
  }
  // It may have been assumed on another node.
  change.freed = entry.node_name != node_name || TakesLess(*pod, *entry.pod);
  Put({std::move(pod), std::move(node_name), false});
  return change;
}

void Placements::Remove(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  Count(found->second, false);
  ForgetPriority(found->second);
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
