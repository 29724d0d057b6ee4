#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "scheduler/cache/node_table.h"
#include "scheduler/cache/pod_info.h"

namespace drakkar::scheduler {

// Which pod is on which node, or about to be (assumed: its binding is under way), or wanted there
// (nominated); keeps the NodeTable's columns in step. An assumed pod counts like a bound one until
// it is forgotten or the API confirms it.
//
// Lives on the scheduler's loop; as many entries as there are such pods.
class Placements {
 public:
  explicit Placements(NodeTable& table) : table_(table) {}

  NodeIndex SetNode(const api::ObjectPtr& node);
  void RemoveNode(std::string_view name);

  void Assume(PodInfoPtr pod, std::string_view node_name);
  // Nothing happens to a pod that the API has confirmed meanwhile.
  void Forget(const std::string& uid);
  // A pod the API shows as bound (`node_name` is set). True if it takes less than before.
  bool Confirm(PodInfoPtr pod);
  void Remove(const std::string& uid);

  bool IsAssumed(const std::string& uid) const;
  // Null if the pod is nowhere.
  const std::string* FindNodeOf(const std::string& uid) const;

  // True if the pod was nominated for another node.
  bool Nominate(PodInfoPtr pod, std::string node_name);
  // True if it was nominated.
  bool Denominate(const std::string& uid);
  // Empty if there is none.
  std::string NominatedNode(const std::string& uid) const;

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

  NodeTable& table_;
  std::size_t assumed_count_ = 0;
  std::unordered_map<std::string, Entry> pods_;  // by uid; looked up only
  // Pods on nodes that we have not heard of, by node name.
  std::map<std::string, std::set<std::string>, std::less<>> strays_;
  std::map<std::string, Entry> nominated_;  // by uid
};

}  // namespace drakkar::scheduler
