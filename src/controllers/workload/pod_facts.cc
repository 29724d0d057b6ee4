#include "controllers/workload/pod_facts.h"

#include "api/meta/time.h"

namespace drakkar::controllers {

using api::Value;

bool IsTerminal(const api::Object& pod) {
  const std::string_view phase = pod["status"]["phase"].str();
  return phase == "Succeeded" || phase == "Failed";
}

bool IsActive(const api::Object& pod) {
  return !pod.is_being_deleted() && !IsTerminal(pod);
}

bool IsTerminating(const api::Object& pod) {
  return pod.is_being_deleted() && !IsTerminal(pod);
}

Value FindCondition(Value status, std::string_view type) {
  for (Value condition : status["conditions"].elements()) {
    if (condition["type"].str() == type) return condition;
  }
  return Value();
}

bool IsReady(const api::Object& pod) {
  return FindCondition(pod["status"], "Ready")["status"].str() == "True";
}

std::optional<WallTime> TimeOf(Value time) {
  if (time.str().empty()) return std::nullopt;
  Result<WallTime> parsed = api::ParseTime(time.str());
  if (!parsed.ok()) return std::nullopt;
  return *parsed;
}

std::optional<WallTime> ReadySince(const api::Object& pod) {
  const Value ready = FindCondition(pod["status"], "Ready");
  if (ready["status"].str() != "True") return std::nullopt;
  return TimeOf(ready["lastTransitionTime"]);
}

std::optional<Duration> UntilAvailable(const api::Object& pod, Duration min_ready, WallTime now) {
  if (min_ready <= Duration::zero()) return std::nullopt;
  const std::optional<WallTime> since = ReadySince(pod);
  if (!since || *since + min_ready <= now) return std::nullopt;
  return *since + min_ready - now;
}

bool IsAvailable(const api::Object& pod, Duration min_ready, WallTime now) {
  if (!IsReady(pod)) return false;
  if (min_ready <= Duration::zero()) return true;
  const std::optional<WallTime> since = ReadySince(pod);
  return since && *since + min_ready <= now;
}

Value ControllerOf(const api::Object& object) {
  for (Value owner : object["metadata"]["ownerReferences"].elements()) {
    if (owner["controller"].boolean()) return owner;
  }
  return Value();
}

}  // namespace drakkar::controllers
