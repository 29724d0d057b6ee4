#include "apiserver/rest/eviction.h"

#include "api/meta/label_selector.h"
#include "api/meta/saturated.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

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
    visit(*each->second);
  }
}

Budget Count(Value spec, const api::LabelSelector& selector, std::string_view namespace_,
             const WatchCache& pods) {
  Budget budget;
  std::int64_t total = 0;
  ForEachIn(pods, namespace_, [&](const api::Object& pod) {
    if (!selector.Matches(pod["metadata"]["labels"])) return;
    const std::string_view phase = pod["status"]["phase"].str();
    if (phase == "Succeeded" || phase == "Failed") return;
    ++total;
    if (IsReady(pod.root())) ++budget.healthy;
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
                                     const WatchCache& budgets, const WatchCache& pods) {
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
  const api::Object* found = nullptr;
  std::optional<api::LabelSelector> found_selector;
  bool has_several = false;
  ForEachIn(budgets, pod.namespace_(), [&](const api::Object& budget) {
    const Value selector = budget["spec"]["selector"];
    if (has_several || !selector.has_value()) return;
    Result<api::LabelSelector> parsed = api::LabelSelector::FromObject(selector);
    if (!parsed.ok() || !parsed->Matches(pod["metadata"]["labels"])) return;
    has_several = found != nullptr;
    found = &budget;
    found_selector = std::move(*parsed);
  });
  if (has_several) {
    return api::StatusInternalError(
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
        "support.");
  }
  if (found == nullptr) return std::nullopt;
  const Value spec = (*found)["spec"];
  const Budget budget = Count(spec, *found_selector, pod.namespace_(), pods);
  if (!IsReady(pod.root()) && (spec["unhealthyPodEvictionPolicy"].str() == "AlwaysAllow" ||
                               (budget.healthy >= budget.needed && budget.needed > 0))) {
    return std::nullopt;
  }
  if (budget.healthy > budget.needed) return std::nullopt;
  Failure failure = api::StatusTooManyRequests(
      "Cannot evict pod as it would violate the pod's disruption budget.", 0);
  failure.causes.push_back(
      {"DisruptionBudget",
       StrCat("The disruption budget ", found->name(), " needs ", budget.needed,
              " healthy pods and has ", budget.healthy, " currently"),
       ""});
  return failure;
}

}  // namespace drakkar::apiserver
