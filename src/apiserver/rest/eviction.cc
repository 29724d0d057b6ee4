#include "apiserver/rest/eviction.h"

#include "api/meta/label_selector.h"
#include "api/meta/saturated.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

// If a pod that a budget was charged with is not being deleted after this time, it stays.
constexpr Duration kDeletionTimeout = std::chrono::minutes(2);

bool IsReady(Value pod) {
  if (pod["metadata"]["deletionTimestamp"].has_value()) return false;
  for (Value condition : pod["status"]["conditions"].elements()) {
    if (condition["type"].str() == "Ready") return condition["status"].str() == "True";
  }
  return false;
}

// A number, or a percentage of `total`, rounded up.
std::int64_t Scaled(Value value, std::int64_t total) {
  if (!value.is_string()) return value.integer();
  const std::string_view text = value.str();
  if (!text.ends_with('%')) return ParseInt64(text).value_or(0);
  const std::int64_t percent = ParseInt64(text.substr(0, text.size() - 1)).value_or(0);
  return api::SaturatedAdd(api::SaturatedMultiply(percent, total), 99) / 100;
}

struct Budget {
  std::int64_t healthy = 0;
  std::int64_t needed = 0;
};

// Visits the objects of a namespace.
template <typename Visit>
void ForEachIn(const WatchCache& cache, std::string_view namespace_, Visit visit) {
  const std::string prefix = StrCat(namespace_, "/");
  for (auto each = cache.objects().lower_bound(prefix);
       each != cache.objects().end() && each->first.starts_with(prefix); ++each) {
    visit(each->second);
  }
}

// Whether the budget was charged with the eviction of a pod that is still there.
bool IsCharged(const api::Object& budget, std::string_view pod, WallTime now) {
  const Result<WallTime> since = api::ParseTime(budget["status"]["disruptedPods"].Entry(pod).str());
  return since.ok() && *since + kDeletionTimeout > now;
}

// The budget as it is for the eviction of `evicted`.
Budget Count(const api::Object& charged, const api::LabelSelector& selector,
             const api::Object& evicted, const WatchCache& pods, WallTime now) {
  const Value spec = charged["spec"];
  Budget budget;
  std::int64_t total = 0;
  ForEachIn(pods, evicted.namespace_(), [&](const api::ObjectPtr& pod) {
    if (!selector.Matches((*pod)["metadata"]["labels"])) return;
    const std::string_view phase = (*pod)["status"]["phase"].str();
    if (phase == "Succeeded" || phase == "Failed") return;
    ++total;
    const bool is_going = pod->name() != evicted.name() && IsCharged(charged, pod->name(), now);
    if (IsReady(pod->root()) && !is_going) ++budget.healthy;
  });
  if (spec["maxUnavailable"].has_value()) {
    budget.needed = std::max<std::int64_t>(0, total - Scaled(spec["maxUnavailable"], total));
  } else {
    budget.needed = Scaled(spec["minAvailable"], total);
  }
  return budget;
}

}  // namespace

std::optional<Failure> CheckEviction(Request& request, const api::Object& pod,
                                     const WatchCache& budgets, const WatchCache& pods,
                                     WallTime now, api::ObjectPtr& charged) {
  charged = nullptr;
  const Value body = request.object->root();
  if (const std::string_view name = body["metadata"]["name"].str();
      !name.empty() && name != request.name) {
    return api::StatusBadRequest(
        StrCat("name in URL does not match name in Eviction object: ", request.name, " != ", name));
  }
  const Value options = body["deleteOptions"];
  if (auto grace = options["gracePeriodSeconds"].optional_integer()) {
    request.grace_period_seconds = *grace;
  }
  request.propagation_policy = options["propagationPolicy"].str();
  request.precondition_uid = options["preconditions"]["uid"].str();
  request.precondition_resource_version = options["preconditions"]["resourceVersion"].str();
  for (Value dry_run : options["dryRun"].elements()) {
    if (dry_run.str() == "All") request.dry_run = true;
  }
  // Pods that are not running or already terminating do not count towards a budget.
  const std::string_view phase = pod["status"]["phase"].str();
  if (phase == "Succeeded" || phase == "Failed" || phase == "Pending" || pod.is_being_deleted()) {
    return std::nullopt;
  }
  api::ObjectPtr found;
  std::optional<api::LabelSelector> found_selector;
  bool has_several = false;
  ForEachIn(budgets, pod.namespace_(), [&](const api::ObjectPtr& budget) {
    const Value selector = (*budget)["spec"]["selector"];
    if (has_several || !selector.has_value()) return;
    Result<api::LabelSelector> parsed = api::LabelSelector::FromObject(selector);
    if (!parsed.ok() || !parsed->Matches(pod["metadata"]["labels"])) return;
    has_several = found != nullptr;
    found = budget;
    found_selector = std::move(*parsed);
  });
  if (has_several) {
    return api::StatusInternalError(
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
        "support.");
  }
  if (found == nullptr) return std::nullopt;
  const Value spec = (*found)["spec"];
  const Budget budget = Count(*found, *found_selector, pod, pods, now);
  if (!IsReady(pod.root()) && (spec["unhealthyPodEvictionPolicy"].str() == "AlwaysAllow" ||
                               (budget.healthy >= budget.needed && budget.needed > 0))) {
    return std::nullopt;
  }
  if (budget.healthy > budget.needed) {
    charged = found;
    return std::nullopt;
  }
  Failure failure = api::StatusTooManyRequests(
      "Cannot evict pod as it would violate the pod's disruption budget.", 0);
  failure.causes.push_back(
      {"DisruptionBudget",
       StrCat("The disruption budget ", found->name(), " needs ", budget.needed,
              " healthy pods and has ", budget.healthy, " currently"),
       ""});
  return failure;
}

api::TreePtr ChargeBudget(const api::Object& budget, std::string_view pod, WallTime now) {
  api::Draft draft(budget.tree());
  api::Draft& status = draft["status"];
  status["disruptedPods"].Entry(pod) = api::FormatTime(now);
  const std::int64_t allowed = budget["status"]["disruptionsAllowed"].integer();
  if (allowed > 0) status["disruptionsAllowed"] = allowed - 1;
  return draft.Freeze();
}

api::TreePtr MarkEvicted(const api::Object& pod, WallTime now) {
  constexpr std::string_view kType = "DisruptionTarget";
  api::Draft draft(pod.tree());
  api::Draft condition{{"type", kType},
                       {"status", "True"},
                       {"reason", "EvictionByEvictionAPI"},
                       {"message", "Eviction API: evicting"},
                       {"lastTransitionTime", api::FormatTime(now)}};
  api::Draft& list = draft["status"]["conditions"];
  std::size_t at = 0;
  for (Value each : pod["status"]["conditions"].elements()) {
    if (each["type"].str() == kType) break;
    ++at;
  }
  if (at < list.size()) {
    list.at(at) = std::move(condition);
  } else {
    list.Append(std::move(condition));
  }
  return draft.Freeze();
}

}  // namespace drakkar::apiserver
