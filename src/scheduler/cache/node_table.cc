#include "scheduler/cache/node_table.h"

#include <algorithm>

#include "base/result/check.h"

namespace drakkar::scheduler {

using api::Value;

NodeIndex NodeTable::Find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? kNoNode : found->second;
}

void NodeTable::Grow() {
  const std::size_t count = objects_.size() + 1;
  for (auto* column : {&free_cpu_, &free_memory_, &free_storage_, &free_pods_, &allocatable_cpu_,
                       &allocatable_memory_, &allocatable_storage_, &allocatable_pods_,
                       &scored_cpu_, &scored_memory_}) {
    column->resize(count, 0);
  }
  objects_.resize(count);
  names_.resize(count);
  allocatable_others_.resize(count);
  requested_others_.resize(count);
  ports_.resize(count);
  taint_group_.resize(count, 0);
  label_versions_.resize(count, 0);
  declared_versions_.resize(count, 0);
  for (NodeSet* set : {&known_, &unschedulable_, &without_pod_slots_}) set->Resize(count);
  if (taint_groups_.empty()) taint_groups_.emplace_back();
  for (TaintGroup& group : taint_groups_) group.nodes.Resize(count);
}

std::uint32_t NodeTable::GroupFor(std::vector<NodeTaint> taints) {
  std::uint32_t free_group = 0;
  for (std::uint32_t i = 0; i < taint_groups_.size(); ++i) {
    if (taint_groups_[i].taints == taints) return i;
    if (taint_groups_[i].node_count == 0) free_group = i;
  }
  if (free_group == 0) {
    free_group = static_cast<std::uint32_t>(taint_groups_.size());
    taint_groups_.emplace_back();
    taint_groups_.back().nodes.Resize(objects_.size());
  }
  taint_groups_[free_group].taints = std::move(taints);
  return free_group;
}

NodeIndex NodeTable::SetNode(const api::ObjectPtr& node) {
  NodeIndex at = Find(node->name());
  const bool is_new = at == kNoNode;
  if (is_new) {
    if (unused_.empty()) {
      at = static_cast<NodeIndex>(objects_.size());
      Grow();
    } else {
      at = unused_.back();
      unused_.pop_back();
    }
    index_.emplace(std::string(node->name()), at);
    names_[at] = std::string(node->name());
    known_.Add(at);
  }
  const Value root = node->root();
  if (is_new ||
      !api::Equal(objects_[at]->root()["metadata"]["labels"], root["metadata"]["labels"])) {
    label_versions_[at] = ++label_version_;
  }
  if (is_new || !api::Equal(objects_[at]->root()["status"]["declaredFeatures"],
                            root["status"]["declaredFeatures"])) {
    declared_versions_[at] = ++declared_version_;
  }
  ResourceAmounts allocatable = ReadResourceList(root["status"]["allocatable"]);
  const std::int64_t pods = ReadAmount("pods", root["status"]["allocatable"].Entry("pods"));
  free_cpu_[at] += allocatable.milli_cpu - allocatable_cpu_[at];
  free_memory_[at] += allocatable.memory - allocatable_memory_[at];
  free_storage_[at] += allocatable.ephemeral_storage - allocatable_storage_[at];
  free_pods_[at] += pods - allocatable_pods_[at];
  allocatable_cpu_[at] = allocatable.milli_cpu;
  allocatable_memory_[at] = allocatable.memory;
  allocatable_storage_[at] = allocatable.ephemeral_storage;
  allocatable_pods_[at] = pods;
  allocatable_others_[at].others = std::move(allocatable.others);
  UpdateSlots(at);
  unschedulable_.Put(at, root["spec"]["unschedulable"].boolean());
  std::vector<NodeTaint> taints = ReadTaints(root);
  if (is_new || taint_groups_[taint_group_[at]].taints != taints) {
    if (!is_new) {
      TaintGroup& old = taint_groups_[taint_group_[at]];
      old.nodes.Remove(at);
      --old.node_count;
    }
    taint_group_[at] = GroupFor(std::move(taints));
    TaintGroup& group = taint_groups_[taint_group_[at]];
    group.nodes.Add(at);
    ++group.node_count;
  }
  objects_[at] = node;
  return at;
}

void NodeTable::RemoveNode(std::string_view name) {
  const auto found = index_.find(name);
  if (found == index_.end()) return;
  const NodeIndex at = found->second;
  index_.erase(found);
  known_.Remove(at);
  unschedulable_.Remove(at);
  without_pod_slots_.Remove(at);
  TaintGroup& group = taint_groups_[taint_group_[at]];
  group.nodes.Remove(at);
  --group.node_count;
  for (auto* column : {&free_cpu_, &free_memory_, &free_storage_, &free_pods_, &allocatable_cpu_,
                       &allocatable_memory_, &allocatable_storage_, &allocatable_pods_,
                       &scored_cpu_, &scored_memory_}) {
    (*column)[at] = 0;
  }
  allocatable_others_[at] = {};
  requested_others_[at] = {};
  ports_[at].clear();
  taint_group_[at] = 0;
  label_versions_[at] = ++label_version_;
  declared_versions_[at] = ++declared_version_;
  objects_[at] = nullptr;
  names_[at].clear();
  if (const auto left = nominated_.find(at); left != nominated_.end()) {
    for (const PodInfoPtr& pod : left->second) nominated_uids_.erase(pod->uid);
    nominated_.erase(left);
  }
  unused_.push_back(at);
}

void NodeTable::AddPod(NodeIndex node, const PodInfo& pod) {
  free_cpu_[node] -= pod.requests.milli_cpu;
  free_memory_[node] -= pod.requests.memory;
  free_storage_[node] -= pod.requests.ephemeral_storage;
  free_pods_[node] -= 1;
  scored_cpu_[node] += pod.scoring_requests.milli_cpu;
  scored_memory_[node] += pod.scoring_requests.memory;
  for (const auto& [name, amount] : pod.requests.others) {
    requested_others_[node].Set(name, requested_others_[node].Other(name) + amount);
  }
  for (const HostPort& port : pod.host_ports) ports_[node].push_back(port);
  UpdateSlots(node);
}

void NodeTable::RemovePod(NodeIndex node, const PodInfo& pod) {
  free_cpu_[node] += pod.requests.milli_cpu;
  free_memory_[node] += pod.requests.memory;
  free_storage_[node] += pod.requests.ephemeral_storage;
  free_pods_[node] += 1;
  scored_cpu_[node] -= pod.scoring_requests.milli_cpu;
  scored_memory_[node] -= pod.scoring_requests.memory;
  for (const auto& [name, amount] : pod.requests.others) {
    requested_others_[node].Set(name, requested_others_[node].Other(name) - amount);
  }
  for (const HostPort& port : pod.host_ports) {
    auto same = [&](const HostPort& p) {
      return p.port == port.port && p.protocol == port.protocol && p.ip == port.ip;
    };
    const auto found = std::find_if(ports_[node].begin(), ports_[node].end(), same);
    CHECK(found != ports_[node].end());
    ports_[node].erase(found);
  }
  UpdateSlots(node);
}

void NodeTable::AddNominated(NodeIndex node, PodInfoPtr pod) {
  nominated_uids_.insert(pod->uid);
  nominated_[node].push_back(std::move(pod));
}

bool NodeTable::KeepsRoomFrom(const PodInfo& nominated, const PodInfo& pod) const {
  if (nominated.uid == pod.uid) return false;
  if (nominated.priority != pod.priority) return nominated.priority > pod.priority;
  if (!nominated_uids_.contains(pod.uid)) return true;
  // Compared as text, because it is RFC 3339 in UTC.
  const std::string_view created = nominated.pod->root()["metadata"]["creationTimestamp"].str();
  const std::string_view own = pod.pod->root()["metadata"]["creationTimestamp"].str();
  return created != own ? created < own : nominated.uid < pod.uid;
}

void NodeTable::RemoveNominated(NodeIndex node, const std::string& uid) {
  const auto found = nominated_.find(node);
  if (found == nominated_.end()) return;
  std::erase_if(found->second, [&](const PodInfoPtr& pod) { return pod->uid == uid; });
  if (found->second.empty()) nominated_.erase(found);
  nominated_uids_.erase(uid);
}

const std::vector<PodInfoPtr>* NodeTable::FindNominated(NodeIndex node) const {
  const auto found = nominated_.find(node);
  return found == nominated_.end() ? nullptr : &found->second;
}

std::int64_t NodeTable::FreeOther(NodeIndex node, std::string_view name) const {
  return allocatable_others_[node].Other(name) - requested_others_[node].Other(name);
}

std::int64_t NodeTable::AllocatableOf(NodeIndex node, std::string_view resource) const {
  if (resource == "cpu") return allocatable_cpu_[node];
  if (resource == "memory") return allocatable_memory_[node];
  if (resource == "ephemeral-storage") return allocatable_storage_[node];
  if (resource == "pods") return allocatable_pods_[node];
  return allocatable_others_[node].Other(resource);
}

}  // namespace drakkar::scheduler
