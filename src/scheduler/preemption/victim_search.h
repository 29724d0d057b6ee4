#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/meta/label_selector.h"
#include "scheduler/cache/node_table.h"
#include "scheduler/cache/placements.h"

namespace drakkar::scheduler {

// What a PodDisruptionBudget allows.
struct DisruptionBudget {
  std::string namespace_;
  api::LabelSelector selector;
  std::int64_t allowed = 0;
  std::set<std::string, std::less<>> disrupted;  // pods that are already counted, by name

  static DisruptionBudget FromApi(const api::Object& budget);
};

// The pods that have to be evicted so that another one fits on a node.
struct PreemptionPlan {
  NodeIndex node = kNoNode;
  std::vector<PodInfoPtr> victims;  // the most important first
  std::size_t violations = 0;       // victims that a disruption budget protects
};

// Finds the pods of lower priority whose removal lets a pod fit, with Kubernetes' preferences:
// violate few disruption budgets, remove pods of low priority, few of them, and young ones.
//
// Removes pods from the placements for trials and puts them back; keeps nothing. Makes at most
// kMaxTrials trials and compares at most Candidates() nodes. Considers no further node after
// kMaxSteps of the work budget: thousands of pods may have terms that each trial is matched with.
class VictimSearch {
 public:
  static constexpr std::size_t kMaxTrials = 2'000;
  static constexpr std::int64_t kMaxSteps = 20'000'000;
  // How many nodes are compared: a tenth of them, at least 100.
  static std::size_t Candidates(std::size_t node_count);

  VictimSearch(const NodeTable& nodes, Placements& placements,
               std::vector<DisruptionBudget> budgets)
      : nodes_(nodes), placements_(placements), budgets_(std::move(budgets)) {}

  // `fits` returns whether the pod fits a node with the placements as they are at that moment.
  // Considers only `among`, beginning at `start`.
  std::optional<PreemptionPlan> Find(const PodInfo& pod, const NodeSet& among, NodeIndex start,
                                     const std::function<bool(NodeIndex)>& fits);

 private:
  // Null if the pod does not fit even without all pods of lower priority.
  std::optional<PreemptionPlan> Try(const PodInfo& pod, NodeIndex node,
                                    const std::function<bool(NodeIndex)>& fits);
  // Whether removing each pod violates a budget, given that those before it are removed as well.
  std::vector<bool> FindViolations(const std::vector<PodInfoPtr>& pods) const;

  const NodeTable& nodes_;
  Placements& placements_;
  const std::vector<DisruptionBudget> budgets_;
  std::size_t trials_ = 0;
};

}  // namespace drakkar::scheduler
