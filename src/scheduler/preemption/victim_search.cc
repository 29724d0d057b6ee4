#include "scheduler/preemption/victim_search.h"

#include <algorithm>
#include <tuple>

#include "base/exec/work_budget.h"

namespace drakkar::scheduler {
namespace {

std::string_view StartTime(const PodInfo& pod) {
  // A pod that has not started is the youngest.
  return pod.status()["startTime"].str("~");
}

bool IsMoreImportant(const PodInfoPtr& a, const PodInfoPtr& b) {
  if (a->priority != b->priority) return a->priority > b->priority;
  if (const auto order = StartTime(*a).compare(StartTime(*b)); order != 0) return order < 0;
  return a->key < b->key;
}

// Smaller is better.
auto CostOf(const PreemptionPlan& plan) {
  std::int64_t sum = 0;
  for (const PodInfoPtr& victim : plan.victims) {
    // Priorities may be negative; the offset ensures that more victims never look cheaper.
    sum += victim->priority + (std::int64_t{1} << 31);
  }
  return std::tuple(plan.violations, plan.victims.empty() ? 0 : plan.victims.front()->priority, sum,
                    plan.victims.size());
}

bool IsBetter(const PreemptionPlan& a, const PreemptionPlan& b) {
  const auto cost_a = CostOf(a);
  const auto cost_b = CostOf(b);
  if (cost_a != cost_b) return cost_a < cost_b;
  // The first victim is the oldest of those with the highest priority.
  return !a.victims.empty() && StartTime(*a.victims.front()) > StartTime(*b.victims.front());
}

}  // namespace

DisruptionBudget DisruptionBudget::FromApi(const api::Object& budget) {
  DisruptionBudget read;
  read.namespace_ = budget.namespace_();
  Result<api::LabelSelector> selector = api::LabelSelector::FromObject(budget["spec"]["selector"]);
  read.selector = selector.ok() ? std::move(*selector) : api::LabelSelector::Nothing();
  read.allowed = budget["status"]["disruptionsAllowed"].integer();
  for (const api::MemberView each : budget["status"]["disruptedPods"].members()) {
    read.disrupted.emplace(each.name);
  }
  return read;
}

std::size_t VictimSearch::Candidates(std::size_t node_count) {
  return std::max<std::size_t>(100, node_count / 10);
}

std::optional<PreemptionPlan> VictimSearch::Find(const PodInfo& pod, const NodeSet& among,
                                                 NodeIndex start,
                                                 const std::function<bool(NodeIndex)>& fits) {
  std::optional<PreemptionPlan> best;
  std::size_t compared = 0;
  const std::size_t enough = Candidates(nodes_.node_count());
  NodeIndex node = among.NextFrom(start);
  if (node == kNoNode) node = among.NextFrom(0);
  const NodeIndex first = node;
  // Only counts the work: selectors must not stop in the middle of a trial.
  const WorkBudget work(WorkBudget::kUnlimited);
  while (node != kNoNode && compared < enough && trials_ < kMaxTrials && work.used() < kMaxSteps) {
    if (std::optional<PreemptionPlan> plan = Try(pod, node, fits)) {
      ++compared;
      if (!best || IsBetter(*plan, *best)) best = std::move(plan);
      if (best->victims.empty()) return best;
    }
    node = among.NextFrom(node + 1);
    if (node == kNoNode) node = among.NextFrom(0);
    if (node == first) break;
  }
  return best;
}

std::optional<PreemptionPlan> VictimSearch::Try(const PodInfo& pod, NodeIndex node,
                                                const std::function<bool(NodeIndex)>& fits) {
  std::vector<PodInfoPtr> lower;
  for (const PodInfoPtr& each : placements_.PodsOn(node)) {
    if (each->priority < pod.priority) lower.push_back(each);
  }
  if (lower.empty()) return std::nullopt;
  std::sort(lower.begin(), lower.end(), IsMoreImportant);
  for (const PodInfoPtr& each : lower) placements_.TakeOff(each->uid);
  ++trials_;
  if (!fits(node)) {
    for (const PodInfoPtr& each : lower) placements_.PutBack(each->uid);
    return std::nullopt;
  }
  // Spare as many pods as possible: those that a budget protects first, then the more important
  // ones.
  PreemptionPlan plan{.node = node, .victims = {}, .violations = 0};
  const std::vector<bool> violates = FindViolations(lower);
  for (const bool is_protected : {true, false}) {
    for (std::size_t i = 0; i < lower.size(); ++i) {
      if (violates[i] != is_protected) continue;
      placements_.PutBack(lower[i]->uid);
      ++trials_;
      if (fits(node)) continue;
      placements_.TakeOff(lower[i]->uid);
      plan.victims.push_back(lower[i]);
      if (is_protected) ++plan.violations;
    }
  }
  for (const PodInfoPtr& victim : plan.victims) placements_.PutBack(victim->uid);
  std::sort(plan.victims.begin(), plan.victims.end(), IsMoreImportant);
  return plan;
}

std::vector<bool> VictimSearch::FindViolations(const std::vector<PodInfoPtr>& pods) const {
  std::vector<std::int64_t> allowed;
  allowed.reserve(budgets_.size());
  for (const DisruptionBudget& each : budgets_) allowed.push_back(each.allowed);
  std::vector<bool> violates(pods.size(), false);
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const PodInfo& pod = *pods[i];
    for (std::size_t j = 0; j < budgets_.size(); ++j) {
      const DisruptionBudget& budget = budgets_[j];
      // As in Kubernetes, a budget with an empty selector protects nothing here.
      if (budget.namespace_ != pod.ns() || pod.labels().empty() || budget.selector.empty() ||
          !budget.selector.Matches(pod.labels()) || budget.disrupted.contains(pod.name())) {
        continue;
      }
      if (--allowed[j] < 0) violates[i] = true;
    }
  }
  return violates;
}

}  // namespace drakkar::scheduler
