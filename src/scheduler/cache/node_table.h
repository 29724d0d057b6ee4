#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "api/meta/object.h"
#include "scheduler/cache/node_set.h"
#include "scheduler/cache/pod_info.h"
#include "scheduler/cache/resources.h"
#include "scheduler/cache/taints.h"

namespace drakkar::scheduler {

// The nodes of the cluster as columns, which filters and scores read. Updated in place between
// scheduling cycles, one node or pod at a time. Lives on the scheduler's loop; bounded by the
// number of nodes and their pods.
class NodeTable {
 public:
  // Adds or updates the node. What its pods use stays counted.
  NodeIndex SetNode(const api::ObjectPtr& node);
  void RemoveNode(std::string_view name);
  NodeIndex Find(std::string_view name) const;  // kNoNode if there is none

  // Counts what a pod uses. Every AddPod must be balanced by a RemovePod with an equal PodInfo.
  void AddPod(NodeIndex node, const PodInfo& pod);
  void RemovePod(NodeIndex node, const PodInfo& pod);

  // Pods that are nominated for the node but not placed, by priority.
  void AddNominated(NodeIndex node, PodInfoPtr pod);
  void RemoveNominated(NodeIndex node, const std::string& uid);
  const std::vector<PodInfoPtr>* FindNominated(NodeIndex node) const;
  bool has_nominated() const { return !nominated_.empty(); }
  // Whether `pod` must leave room for `nominated`. If both are nominated and have the same
  // priority, only the older one has room kept for it, on any node: otherwise they would block each
  // other forever.
  bool KeepsRoomFrom(const PodInfo& nominated, const PodInfo& pod) const;

  std::size_t size() const { return objects_.size(); }  // length of the columns, gaps included
  std::size_t node_count() const { return index_.size(); }
  const NodeSet& known() const { return known_; }
  const NodeSet& unschedulable() const { return unschedulable_; }
  const NodeSet& without_pod_slots() const { return without_pod_slots_; }

  const api::ObjectPtr& object(NodeIndex node) const { return objects_[node]; }
  const std::string& name(NodeIndex node) const { return names_[node]; }

  // Free amounts, possibly negative: allocatable minus what pods request.
  const std::vector<std::int64_t>& free_cpu() const { return free_cpu_; }
  const std::vector<std::int64_t>& free_memory() const { return free_memory_; }
  const std::vector<std::int64_t>& free_storage() const { return free_storage_; }
  const std::vector<std::int64_t>& free_pods() const { return free_pods_; }
  std::int64_t FreeOther(NodeIndex node, std::string_view name) const;
  // For scoring: allocatable, and requests with an assumed minimum per container.
  const std::vector<std::int64_t>& allocatable_cpu() const { return allocatable_cpu_; }
  const std::vector<std::int64_t>& allocatable_memory() const { return allocatable_memory_; }
  const std::vector<std::int64_t>& scored_cpu() const { return scored_cpu_; }
  const std::vector<std::int64_t>& scored_memory() const { return scored_memory_; }
  std::int64_t AllocatableOf(NodeIndex node, std::string_view resource) const;

  // Host ports in use on the node.
  const std::vector<HostPort>& ports(NodeIndex node) const { return ports_[node]; }

  // Nodes with equal taints form a group; group 0 has none. Groups without nodes are reused.
  struct TaintGroup {
    std::vector<NodeTaint> taints;
    NodeSet nodes;
    std::size_t node_count = 0;
  };
  const std::vector<TaintGroup>& taint_groups() const { return taint_groups_; }
  std::uint32_t taint_group(NodeIndex node) const { return taint_group_[node]; }

  // Incremented whenever a node is added, removed or relabelled; per node, the value at its last
  // change. A cache over labels needs to look only at nodes with a higher value than it has seen.
  std::uint64_t label_version() const { return label_version_; }
  const std::vector<std::uint64_t>& label_versions() const { return label_versions_; }
  // The same for status.declaredFeatures.
  std::uint64_t declared_version() const { return declared_version_; }
  const std::vector<std::uint64_t>& declared_versions() const { return declared_versions_; }

 private:
  void Grow();
  std::uint32_t GroupFor(std::vector<NodeTaint> taints);
  void UpdateSlots(NodeIndex node) { without_pod_slots_.Put(node, free_pods_[node] <= 0); }

  std::map<std::string, NodeIndex, std::less<>> index_;
  std::vector<NodeIndex> unused_;

  std::vector<api::ObjectPtr> objects_;
  std::vector<std::string> names_;
  NodeSet known_, unschedulable_, without_pod_slots_;
  std::vector<std::int64_t> free_cpu_, free_memory_, free_storage_, free_pods_;
  std::vector<std::int64_t> allocatable_cpu_, allocatable_memory_, allocatable_storage_,
      allocatable_pods_;
  std::vector<std::int64_t> scored_cpu_, scored_memory_;
  std::vector<ResourceAmounts> allocatable_others_, requested_others_;  // only `others` is used
  std::vector<std::vector<HostPort>> ports_;
  std::vector<std::uint32_t> taint_group_;
  std::vector<TaintGroup> taint_groups_;
  std::uint64_t label_version_ = 0;
  std::vector<std::uint64_t> label_versions_;
  std::uint64_t declared_version_ = 0;
  std::vector<std::uint64_t> declared_versions_;
  std::map<NodeIndex, std::vector<PodInfoPtr>> nominated_;
  std::unordered_set<std::string> nominated_uids_;  // uids of all nominated pods; never iterated
};

}  // namespace drakkar::scheduler
