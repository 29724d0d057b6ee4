#include "controllers/job/pod_outcome.h"

#include <limits>
#include <set>

#include "api/meta/bounded_seconds.h"
#include "base/text/text.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

namespace {

using api::Value;

constexpr std::string_view kFailureCount = "batch.kubernetes.io/job-index-failure-count";
constexpr std::string_view kIgnoredCount = "batch.kubernetes.io/job-index-ignored-failure-count";

std::int64_t NumberIn(const api::Object& pod, std::string_view annotation) {
  const std::int64_t number =
      ParseInt64(pod["metadata"]["annotations"].Entry(annotation).str()).value_or(0);
  return number < 0 || number > std::numeric_limits<std::int32_t>::max() ? 0 : number;
}

// The first container that exited with a code that the rule covers; absent if there is none.
Value FindExit(Value statuses, Value requirement) {
  const Value wanted = requirement["containerName"];
  for (Value status : statuses.elements()) {
    const Value terminated = status["state"]["terminated"];
    const std::int64_t code = terminated["exitCode"].integer();
    if (!terminated.has_value() || code == 0) continue;
    if (wanted.has_value() && wanted.str() != status["name"].str()) continue;
    bool listed = false;
    for (Value each : requirement["values"].elements()) {
      listed = listed || each.integer() == code;
    }
    const std::string_view op = requirement["operator"].str();
    if ((op == "In" && listed) || (op == "NotIn" && !listed)) return status;
  }
  return Value();
}

// Why a rule matches, as text; nullopt if it does not match.
std::optional<std::string> MatchRule(Value rule, const api::Object& pod) {
  const std::string name = StrCat(pod.namespace_(), "/", pod.name());
  const Value status = pod["status"];
  if (const Value codes = rule["onExitCodes"]; codes.has_value()) {
    Value exit = FindExit(status["containerStatuses"], codes);
    if (!exit.exists()) exit = FindExit(status["initContainerStatuses"], codes);
    if (!exit.exists()) return std::nullopt;
    return StrCat("Container ", exit["name"].str(), " for pod ", name, " failed with exit code ",
                  exit["state"]["terminated"]["exitCode"].integer());
  }
  for (Value condition : status["conditions"].elements()) {
    for (Value pattern : rule["onPodConditions"].elements()) {
      if (condition["type"].str() == pattern["type"].str() &&
          condition["status"].str() == pattern["status"].str("True")) {
        return StrCat("Pod ", name, " has condition ", condition["type"].str());
      }
    }
  }
  return std::nullopt;
}

std::optional<WallTime> ContainersEndedAt(const api::Object& pod) {
  std::optional<WallTime> latest;
  std::set<std::string_view> sidecars;
  for (Value container : pod["spec"]["initContainers"].elements()) {
    if (container["restartPolicy"].str() == "Always") {
      sidecars.insert(container["name"].str());
    }
  }
  const Value status = pod["status"];
  for (const api::FieldName list : api::FieldNames{"containerStatuses", "initContainerStatuses"}) {
    for (Value each : status[list].elements()) {
      if (list == api::FieldName("initContainerStatuses") &&
          !sidecars.contains(each["name"].str())) {
        continue;
      }
      const auto ended = TimeOf(each["state"]["terminated"]["finishedAt"]);
      if (!ended) return std::nullopt;
      if (!latest || *latest < *ended) latest = ended;
    }
  }
  return latest;
}

}  // namespace

bool IsTracked(const api::Object& pod) {
  for (Value finalizer : pod["metadata"]["finalizers"].elements()) {
    if (finalizer.str() == kJobFinalizer) return true;
  }
  return false;
}

std::optional<std::int64_t> IndexOf(const api::Object& pod) {
  const auto index = ParseInt64(pod["metadata"]["annotations"].Entry(kIndexAnnotation).str());
  return index && *index >= 0 ? index : std::nullopt;
}

bool IsFailedPod(const api::Object& pod, const api::Object& job) {
  const std::string_view phase = pod["status"]["phase"].str();
  if (phase == "Failed") return true;
  if (job["spec"]["podReplacementPolicy"].str() == "Failed") return false;
  return pod.is_being_deleted() && phase != "Succeeded";
}

WallTime FinishedAt(const api::Object& pod) {
  if (const auto ended = ContainersEndedAt(pod)) return *ended;
  const Value ready = FindCondition(pod["status"], "Ready");
  if (ready["status"].str() == "False") {
    if (const auto since = TimeOf(ready["lastTransitionTime"])) return *since;
  }
  const Value metadata = pod["metadata"];
  if (const auto deadline = TimeOf(metadata["deletionTimestamp"])) {
    return *deadline - api::BoundedSeconds(metadata["deletionGracePeriodSeconds"].integer());
  }
  return TimeOf(metadata["creationTimestamp"]).value_or(WallTime());
}

FailureVerdict JudgeFailure(const api::Object& job, const api::Object& pod) {
  FailureVerdict verdict;
  std::size_t index = 0;
  for (Value rule : job["spec"]["podFailurePolicy"]["rules"].elements()) {
    const std::size_t at = index++;
    const std::optional<std::string> why = MatchRule(rule, pod);
    if (!why) continue;
    const std::string_view action = rule["action"].str();
    verdict.counts = action != "Ignore";
    verdict.fails_index = action == "FailIndex";
    if (action == "FailJob") {
      verdict.fails_job = StrCat(*why, " matching ", action, " rule at index ", at);
    }
    return verdict;
  }
  return verdict;
}

std::int64_t IndexFailures(const api::Object& pod) {
  return NumberIn(pod, kFailureCount);
}

std::int64_t AllIndexFailures(const api::Object& pod) {
  return NumberIn(pod, kFailureCount) + NumberIn(pod, kIgnoredCount);
}

}  // namespace drakkar::controllers
