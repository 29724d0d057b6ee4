#include "controllers/disruption/planner.h"

#include <algorithm>
#include <map>
#include <set>

#include "api/meta/time.h"
#include "base/text/text.h"
#include "controllers/workload/pod_facts.h"
#include "controllers/workload/scaled_value.h"

namespace drakkar::controllers {

namespace {

using api::Value;

// If an evicted pod is not being deleted after this time, assume that it will not be.
constexpr Duration kDeletionTimeout = std::chrono::minutes(2);
constexpr std::string_view kCondition = "DisruptionAllowed";

struct Counts {
  std::int64_t expected = 0;
  std::int64_t desired = 0;
};

class Planner {
 public:
  explicit Planner(const BudgetState& state) : state_(state), spec_(state.budget["spec"]) {}

  BudgetPlan Run() {
    const Counts counts = Expected();
    std::int64_t healthy = 0;
    const Value before = state_.budget["status"];
    api::Draft disrupted = api::Draft::Object();
    for (const api::ObjectPtr& pod : state_.pods) {
      if (pod->is_being_deleted()) continue;
      const Value since = before["disruptedPods"].Entry(pod->name());
      const std::optional<WallTime> time = TimeOf(since);
      if (time && *time + kDeletionTimeout > state_.now) {
        disrupted.Entry(pod->name()) = since.str();
        const Duration left = *time + kDeletionTimeout - state_.now;
        if (!plan_.look_again || left < *plan_.look_again) plan_.look_again = left;
        continue;
      }
      healthy += IsReady(*pod);
    }
    // Without pods nothing may be disrupted: the first ones may appear before the next count.
    const bool none = counts.expected <= 0 || !plan_.failure.empty();
    const std::int64_t allowed = none ? 0 : std::max<std::int64_t>(0, healthy - counts.desired);
    api::Draft status = api::Draft::Object();
    status.KeepAlive(state_.budget.tree());
    status["observedGeneration"] = state_.budget["metadata"]["generation"].integer();
    if (disrupted.size() > 0) status["disruptedPods"] = std::move(disrupted);
    status["disruptionsAllowed"] = allowed;
    status["currentHealthy"] = healthy;
    status["desiredHealthy"] = counts.desired;
    status["expectedPods"] = counts.expected;
    status["conditions"] = Conditions(allowed > 0);
    if (!api::Equal(status.Freeze()->root(), before)) plan_.status = std::move(status);
    return std::move(plan_);
  }

 private:
  Counts Expected() {
    const auto pods = static_cast<std::int64_t>(state_.pods.size());
    const Value most = spec_["maxUnavailable"];
    const Value least = spec_["minAvailable"];
    if (most.has_value()) {
      const std::int64_t scale = Scale();
      return {scale, std::max<std::int64_t>(0, scale - ScaledValue(most, scale, Rounding::kUp))};
    }
    if (least.is_string()) {
      const std::int64_t scale = Scale();
      return {scale, ScaledValue(least, scale, Rounding::kUp)};
    }
    return {pods, least.integer()};
  }

  // The desired number of pods, summed over the owners of these pods.
  std::int64_t Scale() {
    std::set<std::string_view> owners;
    std::int64_t scale = 0;
    for (const api::ObjectPtr& pod : state_.pods) {
      const Value owner = ControllerOf(*pod);
      if (!owner.exists()) {
        plan_.has_unmanaged_pods = true;
        continue;
      }
      if (!owners.insert(owner["uid"].str()).second) continue;
      const std::optional<std::int64_t> wanted = state_.find_scale(owner, pod->namespace_());
      if (wanted) {
        scale += *wanted;
      } else if (plan_.failure.empty()) {
        plan_.failure = StrCat("found no controllers for pod ", Quote(pod->name()));
      }
    }
    return scale;
  }

  api::Draft Conditions(bool allowed) const {
    const Value old = FindCondition(state_.budget["status"], kCondition);
    const std::string_view status = allowed ? "True" : "False";
    const bool same = old["status"].str() == status;
    api::Draft conditions = api::Draft::Array();
    for (Value each : state_.budget["status"]["conditions"].elements()) {
      if (each["type"].str() != kCondition) conditions.Append(api::Draft(each));
    }
    conditions.Append({{"type", kCondition},
                       {"status", status},
                       {"observedGeneration", state_.budget["metadata"]["generation"].integer()},
                       {"lastTransitionTime", same ? std::string(old["lastTransitionTime"].str())
                                                   : api::FormatTime(state_.now)},
                       {"reason", !plan_.failure.empty() ? "SyncFailed"
                                  : allowed              ? "SufficientPods"
                                                         : "InsufficientPods"},
                       {"message", plan_.failure}});
    return conditions;
  }

  const BudgetState& state_;
  const Value spec_;
  BudgetPlan plan_;
};

}  // namespace

BudgetPlan PlanBudget(const BudgetState& state) {
  return Planner(state).Run();
}

}  // namespace drakkar::controllers
