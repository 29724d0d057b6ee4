#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scheduler/cache/node_table.h"
#include "scheduler/cache/pod_info.h"

namespace drakkar::scheduler {

// Which pods are bound to a node, assumed there (their binding is in flight) or nominated for it;
// keeps the columns of the NodeTable up to date. An assumed pod counts like a bound one until it is
// forgotten or the API confirms it.
//
// Lives on the scheduler's loop; one entry per such pod.
class Placements {
 public:
  explicit Placements(NodeTable& table) : table_(table) {}

  NodeIndex SetNode(const api::ObjectPtr& node);
  void RemoveNode(std::string_view name);

  void Assume(PodInfoPtr pod, std::string_view node_name);
  // A no-op if the API has confirmed the pod.
  void Forget(const std::string& uid);
  // A pod the API shows as bound (`node_name` is set).
  struct Change {
    bool freed = false;  // it uses less than before, or is not on the assumed node
    bool is_new = false;
    bool relabelled = false;  // its labels changed, or its deletion began
  };
  Change Confirm(PodInfoPtr pod);
  void Remove(const std::string& uid);

  bool IsAssumed(const std::string& uid) const;
  // Null if the pod is neither bound nor assumed.
  const std::string* FindNodeOf(const std::string& uid) const;

  // For trials: the pod's node no longer counts it, until PutBack. The pod must be on a known node.
  void TakeOff(const std::string& uid) { Count(pods_.at(uid), false); }
  void PutBack(const std::string& uid) { Count(pods_.at(uid), true); }
  // Whether a pod with a lower priority is placed anywhere.
  bool HasPodBelow(std::int64_t priority) const {
    return !priorities_.empty() && priorities_.begin()->first < priority;
  }

  // True if the pod was nominated for another node.
  bool Nominate(PodInfoPtr pod, std::string node_name);
  // True if it was nominated.
  bool Denominate(const std::string& uid);
  // Empty if there is none.
  std::string NominatedNode(const std::string& uid) const;

  // The pods of a known node, assumed ones included, in no order.
  const std::vector<PodInfoPtr>& PodsOn(NodeIndex node) const { return by_node_[node]; }
  // Incremented whenever the pods of a node or their labels change; per node, the value at its last
  // change. A cache over pods needs to look only at nodes with a higher value than it has seen.
  std::uint64_t pods_version() const { return pods_version_; }
  const std::vector<std::uint64_t>& pods_versions() const { return pods_versions_; }
  // The same, but only for pods with pod affinity, which most pods lack.
  std::uint64_t affinity_version() const { return affinity_version_; }
  const std::vector<std::uint64_t>& affinity_versions() const { return affinity_versions_; }

  std::size_t size() const { return pods_.size(); }
  std::size_t assumed_count() const { return assumed_count_; }

 private:
  struct Entry {
    PodInfoPtr pod;
    std::string node_name;
    bool assumed = false;
  };
  void Put(Entry entry);
  void Count(const Entry& entry, bool add);
  void ForgetPriority(const Entry& entry);
  void Note(NodeIndex node) { pods_versions_[node] = ++pods_version_; }
  void NoteAffinity(NodeIndex node) { affinity_versions_[node] = ++affinity_version_; }

  NodeTable& table_;
  std::size_t assumed_count_ = 0;
  std::unordered_map<std::string, Entry> pods_;     // by uid; never iterated
  std::map<std::int64_t, std::size_t> priorities_;  // number of placed pods
  // By NodeIndex.
  std::vector<std::vector<PodInfoPtr>> by_node_;
  std::vector<std::uint64_t> pods_versions_;
  std::uint64_t pods_version_ = 0;
  std::vector<std::uint64_t> affinity_versions_;
  std::uint64_t affinity_version_ = 0;
  // Pods on unknown nodes, by node name.
  std::map<std::string, std::set<std::string>, std::less<>> strays_;
  std::map<std::string, Entry> nominated_;  // by uid
};

}  // namespace drakkar::scheduler
