#include "controllers/disruption/controller.h"

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "controllers/disruption/planner.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

DisruptionController::DisruptionController(Options options)
    : options_(std::move(options)),
      client_(options_.client),
      selectors_(options_.budgets),
      queue_(options_.loop, options_.random, {"disruption"},
             [this](const std::string& key, Done done) { Sync(key, std::move(done)); }) {
  options_.budgets.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& budget) { queue_.Add(budget->qualified_name()); },
       .on_update = [this](const api::ObjectPtr&,
                           const api::ObjectPtr& after) { queue_.Add(after->qualified_name()); }});
  options_.pods.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& pod) { OnPod(nullptr, pod); },
       .on_update = [this](const api::ObjectPtr& before,
                           const api::ObjectPtr& pod) { OnPod(before, pod); },
       .on_delete = [this](const api::ObjectPtr& pod) { OnPod(nullptr, pod); }});
  const auto all = [this] {
    for (const auto& [name, budget] : options_.budgets.objects()) queue_.Add(name);
  };
  for (client::Informer* owners : options_.owners) {
    // A changed size concerns the budgets of its pods.
    owners->AddHandlers(
        {.on_update = [this](const api::ObjectPtr& before, const api::ObjectPtr& after) {
          if (api::Equal((*before)["spec"]["replicas"], (*after)["spec"]["replicas"])) return;
          for (const std::string& name : selectors_.Matching(
                   after->namespace_(), (*after)["spec"]["template"]["metadata"]["labels"])) {
            queue_.Add(name);
          }
        }});
    owners->OnSynced(all);
  }
  options_.pods.OnSynced(all);
}

void DisruptionController::OnPod(const api::ObjectPtr& before, const api::ObjectPtr& pod) {
  if (before != nullptr && before->is_being_deleted() == pod->is_being_deleted() &&
      IsTerminal(*before) == IsTerminal(*pod) && IsReady(*before) == IsReady(*pod) &&
      ControllerOf(*before)["uid"].str() == ControllerOf(*pod)["uid"].str() &&
      api::Equal((*before)["metadata"]["labels"], (*pod)["metadata"]["labels"])) {
    return;
  }
  for (const api::ObjectPtr& each : {before, pod}) {
    if (each == nullptr) continue;
    for (const std::string& name :
         selectors_.Matching(each->namespace_(), (*each)["metadata"]["labels"])) {
      queue_.Add(name);
    }
  }
}

std::optional<std::int64_t> DisruptionController::FindScale(api::Value owner,
                                                            std::string_view namespace_) const {
  for (const client::Informer* owners : options_.owners) {
    if (owners->kind().kind != owner["kind"].str() ||
        !owners->kind().is_api_version(owner["apiVersion"].str())) {
      continue;
    }
    const api::ObjectPtr found = owners->Find(StrCat(namespace_, "/", owner["name"].str()));
    if (found == nullptr || found->uid() != owner["uid"].str()) return std::nullopt;
    // A ReplicaSet changes its size during a rollout; its Deployment does not.
    const api::Value above = ControllerOf(*found);
    if (above["kind"].str() == "Deployment") {
      if (const auto scale = FindScale(above, namespace_)) return scale;
    }
    return (*found)["spec"]["replicas"].integer(1);
  }
  return std::nullopt;
}

void DisruptionController::Sync(const std::string& key, Done done) {
  const api::ObjectPtr budget = options_.budgets.Find(key);
  const api::LabelSelector* selector = selectors_.Find(key);
  bool synced = options_.pods.has_synced();
  for (const client::Informer* owners : options_.owners) synced = synced && owners->has_synced();
  if (budget == nullptr || selector == nullptr || budget->is_being_deleted() || !synced) {
    return done(Ok());
  }
  BudgetState state{
      .budget = *budget,
      .find_scale = [this](api::Value owner,
                           std::string_view name_space) { return FindScale(owner, name_space); },
      .now = options_.loop.clock().Now()};
  const std::string prefix = StrCat(budget->namespace_(), "/");
  const auto& pods = options_.pods.objects();
  for (auto each = pods.lower_bound(prefix);
       each != pods.end() && std::string_view(each->first).starts_with(prefix); ++each) {
    if (IsTerminal(*each->second)) continue;
    if (selector->Matches((*each->second)["metadata"]["labels"])) {
      state.pods.push_back(each->second);
    }
  }
  BudgetPlan plan = PlanBudget(state);
  if (!plan.failure.empty()) {
    options_.events.Warning(
        budget, "CalculateExpectedPodCountFailed",
        StrCat("Failed to calculate the number of expected pods: ", plan.failure));
  } else if (plan.has_unmanaged_pods) {
    options_.events.Warning(
        budget, "UnmanagedPods",
        "Pods selected by this PodDisruptionBudget have no controller, so their expected number is "
        "unknown. Set .spec.minAvailable to an integer to account for them.");
  }
  const auto finish = [this, key, wait = plan.look_again,
                       done = std::move(done)](Result<void> result) {
    const bool ok = result.ok();  // failures are retried with backoff
    done(std::move(result));
    if (ok && wait) queue_.AddAfter(key, *wait + std::chrono::seconds(1));
  };
  if (!plan.status) return finish(Ok());
  api::Draft body(budget->tree());
  body["status"] = std::move(*plan.status);
  client_.Update({&options_.budgets.kind(), std::string(budget->namespace_()),
                  std::string(budget->name()), "status"},
                 body.Freeze(), {}, [finish](client::Reply reply) {
                   const bool over = reply.ok() || reply.error->code == ErrorCode::kNotFound;
                   finish(over ? Ok() : Result<void>(*reply.error));
                 });
}

}  // namespace drakkar::controllers
