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

// Every node of the cluster as columns: what filters and scores read. Changed in place, one node or
// pod at a time, between scheduling cycles; never rebuilt. Lives on the scheduler's loop; bounded
// by the number of nodes and their pods.
class NodeTable {
 public:
  // Adds the node or takes over its new version. Amounts of pods added before stay.
  NodeIndex SetNode(const api::ObjectPtr& node);
  void RemoveNode(std::string_view name);
  NodeIndex Find(std::string_view name) const;  // kNoNode if there is none

  // What a pod occupies. Every Add is balanced by a Remove with an equal PodInfo.
  void AddPod(NodeIndex node, const PodInfo& pod);
  void RemovePod(NodeIndex node, const PodInfo& pod);

  // Room that pods want which are expected here but not placed (nominated), by priority.
  void AddNominated(NodeIndex node, PodInfoPtr pod);
  void RemoveNominated(NodeIndex node, const std::string& uid);
  const std::vector<PodInfoPtr>* FindNominated(NodeIndex node) const;
  bool has_nominated() const { return !nominated_.empty(); }
  // Whether `pod` must leave the room that `nominated`, one of those, wants. Of two that are
  // nominated and equally important only the older one has it kept, wherever the other is expected:
  // they would keep each other out for good.
  bool KeepsRoomFrom(const PodInfo& nominated, const PodInfo& pod) const;

  std::size_t size() const { return objects_.size(); }  // of columns, gaps included
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
  // For scoring: allocatable, and what is requested with the assumed minimum per container.
  const std::vector<std::int64_t>& allocatable_cpu() const { return allocatable_cpu_; }
  const std::vector<std::int64_t>& allocatable_memory() const { return allocatable_memory_; }
  const std::vector<std::int64_t>& scored_cpu() const { return scored_cpu_; }
  const std::vector<std::int64_t>& scored_memory() const { return scored_memory_; }
  std::int64_t AllocatableOf(NodeIndex node, std::string_view resource) const;

  // Host ports in use on the node.
  const std::vector<HostPort>& ports(NodeIndex node) const { return ports_[node]; }

  // Nodes with equal taints are one group; group 0 has none. Groups without nodes stay until the
  // table is asked for a new one and has too many.
  struct TaintGroup {
    std::vector<NodeTaint> taints;
    NodeSet nodes;
    std::size_t node_count = 0;
  };
  const std::vector<TaintGroup>& taint_groups() const { return taint_groups_; }
  std::uint32_t taint_group(NodeIndex node) const { return taint_group_[node]; }

  // Rises with every change of any node's labels or presence; per node the value at its last one.
  // Whoever keeps answers about labels asks again only for nodes beyond what it has seen.
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
  std::unordered_set<std::string> nominated_uids_;  // of all of them; looked up only
};

}  // namespace drakkar::scheduler
