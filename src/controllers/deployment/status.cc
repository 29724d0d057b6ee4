#include "controllers/deployment/status.h"

#include <algorithm>
#include <limits>

#include "api/meta/time.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "controllers/deployment/annotations.h"
#include "controllers/deployment/planner.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

namespace {

using api::Draft;
using api::Value;

constexpr std::string_view kProgressing = "Progressing";
constexpr std::string_view kAvailable = "Available";
constexpr std::string_view kReplicaFailure = "ReplicaFailure";
constexpr std::string_view kComplete = "NewReplicaSetAvailable";
constexpr std::string_view kTimedOut = "ProgressDeadlineExceeded";
constexpr std::string_view kPaused = "DeploymentPaused";

bool HasDeadline(const api::Object& deployment) {
  const Value seconds = deployment["spec"]["progressDeadlineSeconds"];
  return seconds.has_value() && seconds.integer() != std::numeric_limits<std::int32_t>::max();
}

Duration DeadlineOf(const api::Object& deployment) {
  return std::chrono::seconds(deployment["spec"]["progressDeadlineSeconds"].integer());
}

// The conditions of a status under construction.
class Conditions {
 public:
  Conditions(Value status, WallTime now) : now_(api::FormatTime(now)) {
    for (Value each : status["conditions"].elements()) list_.push_back(Draft(each));
  }

  Draft* Find(std::string_view type) {
    for (Draft& each : list_) {
      if (each["type"].str() == type) return &each;
    }
    return nullptr;
  }
  std::string_view ReasonOf(std::string_view type) {
    Draft* found = Find(type);
    return found == nullptr ? "" : (*found)["reason"].str();
  }

  // The transition time stays as long as the status does. A condition with the same status and
  // reason is not changed unless it is `renewed`.
  void Set(std::string_view type, std::string_view status, std::string_view reason,
           std::string message, bool renewed = false) {
    std::string since = now_;
    if (Draft* before = Find(type)) {
      const bool same_status = (*before)["status"].str() == status;
      if (same_status && (*before)["reason"].str() == reason && !renewed) return;
      if (same_status) since = (*before)["lastTransitionTime"].str();
    }
    Remove(type);
    list_.push_back({{"type", type},
                     {"status", status},
                     {"lastUpdateTime", now_},
                     {"lastTransitionTime", since},
                     {"reason", reason},
                     {"message", std::move(message)}});
  }
  void SetFrom(Value condition) {
    const std::string time(condition["lastTransitionTime"].str());
    if (Draft* before = Find(condition["type"].str());
        before != nullptr && (*before)["status"].str() == condition["status"].str() &&
        (*before)["reason"].str() == condition["reason"].str()) {
      return;
    }
    Remove(condition["type"].str());
    list_.push_back({{"type", condition["type"].str()},
                     {"status", condition["status"].str()},
                     {"lastUpdateTime", time},
                     {"lastTransitionTime", time},
                     {"reason", condition["reason"].str()},
                     {"message", condition["message"].str()}});
  }
  void Remove(std::string_view type) {
    std::erase_if(list_, [&](Draft& each) { return each["type"].str() == type; });
  }
  Draft Take() { return Draft::Array(std::move(list_)); }

 private:
  const std::string now_;
  std::vector<Draft> list_;
};

struct Counts {
  std::int64_t replicas = 0, updated = 0, ready = 0, available = 0, unavailable = 0;
  std::optional<std::int64_t> terminating = 0;  // nullopt if a set does not report it
};

Counts Count(const StatusInput& input) {
  Counts counts;
  for (const api::ObjectPtr& set : input.sets) {
    const Value status = (*set)["status"];
    counts.replicas += status["replicas"].integer();
    counts.ready += status["readyReplicas"].integer();
    counts.available += status["availableReplicas"].integer();
    const auto terminating = status["terminatingReplicas"].optional_integer();
    if (terminating && counts.terminating) {
      *counts.terminating += *terminating;
    } else if (status["observedGeneration"].integer() != 0) {
      counts.terminating.reset();
    }
  }
  if (input.fresh != nullptr) {
    counts.updated = (*input.fresh)["status"]["replicas"].integer();
  }
  counts.unavailable = std::max<std::int64_t>(input.total_size - counts.available, 0);
  return counts;
}

bool IsProgress(const Counts& counts, Value before) {
  const std::int64_t old_replicas =
      before["replicas"].integer() - before["updatedReplicas"].integer();
  return counts.updated > before["updatedReplicas"].integer() ||
         counts.replicas - counts.updated < old_replicas ||
         counts.ready > before["readyReplicas"].integer() ||
         counts.available > before["availableReplicas"].integer();
}

// Whether a rollout is complete, makes progress, or has exceeded its deadline.
void JudgeProgress(const StatusInput& input, const Counts& counts, Conditions& conditions) {
  if (!HasDeadline(input.deployment)) return conditions.Remove(kProgressing);
  const std::string subject = input.fresh != nullptr
                                  ? StrCat("ReplicaSet ", Quote(input.fresh->name()))
                                  : StrCat("Deployment ", Quote(input.deployment.name()));
  const bool was_complete =
      counts.replicas == counts.updated && conditions.ReasonOf(kProgressing) == kComplete;
  if (was_complete) return;
  const bool complete = counts.updated == input.wanted && counts.replicas == input.wanted &&
                        counts.available == input.wanted;
  if (complete) {
    conditions.Set(kProgressing, "True", kComplete, subject + " has successfully progressed.");
  } else if (IsProgress(counts, input.deployment["status"])) {
    conditions.Set(kProgressing, "True", "ReplicaSetUpdated", subject + " is progressing.",
                   /*renewed=*/true);
  } else if (Draft* condition = conditions.Find(kProgressing)) {
    if ((*condition)["reason"].str() == kComplete) return;
    const Result<WallTime> since = api::ParseTime((*condition)["lastUpdateTime"].str());
    if (since.ok() && *since + DeadlineOf(input.deployment) < input.now) {
      conditions.Set(kProgressing, "False", kTimedOut, subject + " has timed out progressing.");
    }
  }
}

void CopyFailure(const StatusInput& input, Conditions& conditions) {
  Value failure;
  if (input.fresh != nullptr) failure = FindCondition((*input.fresh)["status"], kReplicaFailure);
  for (const api::ObjectPtr& set : input.sets) {
    if (!failure.exists()) failure = FindCondition((*set)["status"], kReplicaFailure);
  }
  if (failure.exists()) {
    conditions.SetFrom(failure);
  } else {
    conditions.Remove(kReplicaFailure);
  }
}

// The progress deadline is suspended while the Deployment is paused.
void NotePause(const StatusInput& input, Conditions& conditions) {
  if (!HasDeadline(input.deployment) || input.deployment.is_being_deleted()) return;
  const std::string reason(conditions.ReasonOf(kProgressing));
  if (reason == kTimedOut) return;
  if (input.deployment["spec"]["paused"].boolean()) {
    conditions.Set(kProgressing, "Unknown", kPaused, "Deployment is paused");
  } else if (reason == kPaused) {
    conditions.Set(kProgressing, "Unknown", "DeploymentResumed", "Deployment is resumed");
  }
}

void NoteNewSet(const StatusInput& input, Conditions& conditions) {
  if (!HasDeadline(input.deployment)) return;
  if (!input.created.empty()) {
    conditions.Set(kProgressing, "True", "NewReplicaSetCreated",
                   StrCat("Created new replica set ", Quote(input.created)));
  } else if (input.fresh != nullptr && conditions.Find(kProgressing) == nullptr) {
    conditions.Set(kProgressing, "True", "FoundNewReplicaSet",
                   StrCat("Found new replica set ", Quote(input.fresh->name())));
  }
}

void SetNumber(Draft& status, api::FieldName field, std::int64_t number) {
  if (number != 0) {
    status[field] = number;
  } else {
    status.Remove(field);
  }
}

// The Deployment with these conditions; null if it already has them.
api::TreePtr WithConditions(const api::Object& deployment, Conditions conditions) {
  Draft body(deployment.tree());
  body["status"]["conditions"] = conditions.Take();
  const api::TreePtr made = body.Freeze();
  return api::Equal(made->root()["status"], deployment["status"]) ? nullptr : made;
}

// How long until the deadline of a stalled rollout has passed.
std::optional<Duration> UntilDeadline(const StatusInput& input, Value status) {
  if (!input.judges_progress || !HasDeadline(input.deployment)) return std::nullopt;
  const Value condition = FindCondition(status, kProgressing);
  const std::string_view reason = condition["reason"].str();
  if (!condition.exists() || reason == kTimedOut || IsComplete(input.deployment, status)) {
    return std::nullopt;
  }
  const std::optional<WallTime> since = TimeOf(condition["lastUpdateTime"]);
  if (!since) return std::nullopt;
  // Add a second, because times in conditions are truncated to seconds.
  return std::max<Duration>(*since + DeadlineOf(input.deployment) - input.now, Duration::zero()) +
         std::chrono::seconds(1);
}

}  // namespace

bool IsComplete(const api::Object& deployment, Value status) {
  const std::int64_t wanted = deployment["spec"]["replicas"].integer(1);
  return status["updatedReplicas"].integer() == wanted && status["replicas"].integer() == wanted &&
         status["availableReplicas"].integer() == wanted &&
         status["observedGeneration"].integer() >= deployment["metadata"]["generation"].integer();
}

StatusPlan PlanDeploymentStatus(const StatusInput& input) {
  const api::Object& deployment = input.deployment;
  const Value before = deployment["status"];
  const Counts counts = Count(input);
  Conditions conditions(before, input.now);
  NotePause(input, conditions);
  NoteNewSet(input, conditions);
  if (counts.available >= input.wanted - input.max_unavailable) {
    conditions.Set(kAvailable, "True", "MinimumReplicasAvailable",
                   "Deployment has minimum availability.");
  } else {
    conditions.Set(kAvailable, "False", "MinimumReplicasUnavailable",
                   "Deployment does not have minimum availability.");
  }
  if (input.judges_progress) {
    if (input.created.empty()) JudgeProgress(input, counts, conditions);
    CopyFailure(input, conditions);
  }
  Draft body(deployment.tree());
  Draft& status = body["status"];
  SetNumber(status, "observedGeneration", deployment["metadata"]["generation"].integer());
  SetNumber(status, "replicas", counts.replicas);
  SetNumber(status, "updatedReplicas", counts.updated);
  SetNumber(status, "readyReplicas", counts.ready);
  SetNumber(status, "availableReplicas", counts.available);
  SetNumber(status, "unavailableReplicas", counts.unavailable);
  if (counts.terminating) {
    status["terminatingReplicas"] = *counts.terminating;
  } else {
    status.Remove("terminatingReplicas");
  }
  status["conditions"] = conditions.Take();
  const bool revised = input.revision != 0 && RevisionOf(deployment) != input.revision;
  if (revised) {
    body["metadata"]["annotations"].Entry(kRevisionAnnotation) = StrCat(input.revision);
  }
  api::TreePtr made = body.Freeze();
  StatusPlan plan;
  plan.look_again = UntilDeadline(input, made->root()["status"]);
  if (revised || !api::Equal(made->root()["status"], before)) plan.deployment = std::move(made);
  return plan;
}

api::TreePtr WithCreateError(const api::Object& deployment, const std::string& message,
                             WallTime now) {
  if (!HasDeadline(deployment)) return nullptr;
  Conditions conditions(deployment["status"], now);
  conditions.Set(kProgressing, "False", "ReplicaSetCreateError", message);
  return WithConditions(deployment, std::move(conditions));
}

api::TreePtr WithCollision(const api::Object& deployment) {
  Draft body(deployment.tree());
  body["status"]["collisionCount"] = deployment["status"]["collisionCount"].integer() + 1;
  return body.Freeze();
}

}  // namespace drakkar::controllers
