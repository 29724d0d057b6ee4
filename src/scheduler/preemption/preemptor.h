#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "scheduler/preemption/victim_search.h"

namespace drakkar::scheduler {

// Evicts pods of lower priority so that a pod fits. The victims get the condition DisruptionTarget
// and are deleted; the pod is nominated for the node and scheduled when they have ended.
//
// Lives on the scheduler's loop; one entry per disruption budget and per victim that is not being
// deleted yet.
class Preemptor {
 public:
  struct Options {
    EventLoop& loop;
    client::Client& client;
    const NodeTable& nodes;
    Placements& placements;
    // A victim could not be deleted, so the pod that waits for its room should be tried again.
    std::function<void(const PodInfo& victim)> on_failed;
  };
  explicit Preemptor(Options options) : options_(std::move(options)) {}

  void SetBudget(const api::ObjectPtr& budget);
  void RemoveBudget(const api::ObjectPtr& budget);
  // The pod is being deleted or no longer exists.
  void Forget(const std::string& pod_uid) { doomed_.erase(pod_uid); }

  // Whether eviction may be considered for the pod at all. False if its policy forbids it, if no
  // placed pod has a lower priority, or if victims on its nominated node have not ended yet.
  bool MayPreempt(const PodInfo& pod) const;
  // No result: no eviction would help.
  std::optional<PreemptionPlan> Plan(const PodInfo& pod, const NodeSet& among,
                                     const std::function<bool(NodeIndex)>& fits);
  // Evicts the victims in the name of the scheduler with this name.
  void CarryOut(const PreemptionPlan& plan, const std::string& scheduler_name);

 private:
  bool IsEnding(const PodInfo& pod) const {
    return pod.pod->is_being_deleted() || doomed_.contains(pod.uid);
  }
  void Evict(const PodInfoPtr& victim);

  const Options options_;
  std::map<std::string, DisruptionBudget> budgets_;  // by namespace/name
  std::set<std::string> doomed_;                     // uids of victims not yet being deleted
  NodeIndex next_start_ = 0;
  Lifetime lifetime_;
};

}  // namespace drakkar::scheduler
