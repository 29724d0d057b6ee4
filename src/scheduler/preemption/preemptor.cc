#include "scheduler/preemption/preemptor.h"

#include <algorithm>

#include "api/json/writer.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::scheduler {
namespace {

constexpr Logger kLog("scheduler.preemption");

client::ResourceRef RefTo(const PodInfo& pod, std::string subresource = "") {
  return {api::FindKind("", "v1", "Pod"), std::string(pod.ns()), std::string(pod.name()),
          std::move(subresource)};
}

}  // namespace

void Preemptor::SetBudget(const api::ObjectPtr& budget) {
  budgets_[budget->qualified_name()] = DisruptionBudget::FromApi(*budget);
}

void Preemptor::RemoveBudget(const api::ObjectPtr& budget) {
  budgets_.erase(budget->qualified_name());
}

bool Preemptor::MayPreempt(const PodInfo& pod) const {
  if (pod.spec()["preemptionPolicy"].str() == "Never") return false;
  if (!options_.placements.HasPodBelow(pod.priority)) return false;
  const std::string nominated = options_.placements.NominatedNode(pod.uid);
  const NodeIndex node = nominated.empty() ? kNoNode : options_.nodes.Find(nominated);
  if (node == kNoNode) return true;
  const std::vector<PodInfoPtr>& placed = options_.placements.PodsOn(node);
  return std::none_of(placed.begin(), placed.end(), [&](const PodInfoPtr& each) {
    return each->priority < pod.priority && IsEnding(*each);
  });
}

std::optional<PreemptionPlan> Preemptor::Plan(const PodInfo& pod, const NodeSet& among,
                                              const std::function<bool(NodeIndex)>& fits) {
  std::vector<DisruptionBudget> budgets;
  for (const auto& [name, budget] : budgets_) budgets.push_back(budget);
  VictimSearch search(options_.nodes, options_.placements, std::move(budgets));
  std::optional<PreemptionPlan> plan = search.Find(pod, among, next_start_, fits);
  if (plan) next_start_ = plan->node + 1;
  return plan;
}

void Preemptor::CarryOut(const PreemptionPlan& plan, const std::string& scheduler_name) {
  for (const PodInfoPtr& victim : plan.victims) {
    if (IsEnding(*victim)) continue;
    doomed_.insert(victim->uid);
    api::Draft condition{
        {"type", "DisruptionTarget"},
        {"status", "True"},
        {"lastTransitionTime", api::FormatTime(options_.loop.clock().Now())},
        {"reason", "PreemptionByScheduler"},
        {"message", StrCat(scheduler_name, ": preempting to accommodate a higher priority pod")}};
    api::Draft patch{{"metadata", api::Draft{{"uid", victim->uid}}}};
    patch["status"]["conditions"].Append(std::move(condition));
    // The condition says why the pod ends. If it cannot be written, the pod is evicted all the
    // same.
    options_.client.Patch(RefTo(*victim, "status"), client::PatchType::kStrategicMerge,
                          api::WriteJson(patch.Freeze()->root()), {},
                          lifetime_.Guard([this, victim](client::Reply) { Evict(victim); }));
  }
}

void Preemptor::Evict(const PodInfoPtr& victim) {
  client::DeleteOptions only_this;
  only_this.precondition_uid = victim->uid;
  options_.client.Delete(
      RefTo(*victim), std::move(only_this), lifetime_.Guard([this, victim](client::Reply reply) {
        if (reply.ok() || reply.error->code == ErrorCode::kNotFound) return;
        kLog.Warning("pod was not evicted", {{"pod", victim->key}, {"err", reply.error->message}});
        doomed_.erase(victim->uid);
        options_.on_failed(*victim);
      }));
}

}  // namespace drakkar::scheduler
