#include "controllers/device_taint_eviction/rule_status.h"

#include "api/json/writer.h"
#include "api/meta/time.h"
#include "base/text/text.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

namespace {

constexpr std::string_view kType = "EvictionInProgress";

struct Condition {
  bool in_progress = false;
  std::string_view reason;
  std::string message;
};

// "1 pod needs", "2 pods need"
std::string Count(std::size_t count, std::string_view one, std::string_view more) {
  return StrCat(std::to_string(count), " ", count == 1 ? one : more);
}

std::string Namespaces(std::size_t count) {
  return Count(count, "namespace", "different namespaces");
}

Condition Describe(std::string_view effect, const RuleProgress& progress) {
  if (effect == "None") {
    return {.reason = "NoEffect",
            .message =
                StrCat(Count(progress.published_devices, "published device", "published devices"),
                       " selected. ",
                       Count(progress.allocated_devices, "allocated device", "allocated devices"),
                       " selected. ", Count(progress.pending_pods, "pod", "pods"),
                       " would be evicted in ", Namespaces(progress.pending_namespaces),
                       " if the effect was NoExecute. This information will not be updated again. "
                       "Recreate the DeviceTaintRule to trigger an update.")};
  }
  Condition condition;
  if (effect != "NoExecute") {
    condition.reason = "OtherEffect";
    condition.message = "Eviction only happens for the NoExecute effect.";
  } else if (progress.pending_pods > 0) {
    condition.in_progress = true;
    condition.reason = "PodsPendingEviction";
    condition.message = StrCat(Count(progress.pending_pods, "pod needs", "pods need"),
                               " to be evicted in ", Namespaces(progress.pending_namespaces), ".");
  } else {
    condition.reason = progress.evicted_pods > 0 ? "Completed" : "NotStarted";
  }
  if (progress.evicted_pods > 0) {
    condition.message = StrCat(condition.message, condition.message.empty() ? "" : " ",
                               Count(progress.evicted_pods, "pod", "pods"),
                               " evicted since starting the controller.");
  }
  return condition;
}

}  // namespace

bool IsRehearsal(const api::Object& rule) {
  return rule["spec"]["taint"]["effect"].str() == "None";
}

bool IsReported(const api::Object& rule) {
  const api::Value condition = FindCondition(rule["status"], kType);
  return condition.has_value() &&
         condition["observedGeneration"].integer() == rule["metadata"]["generation"].integer();
}

std::optional<std::string> RuleStatusPatch(const api::Object& rule, const RuleProgress& progress,
                                           WallTime now) {
  const Condition wanted = Describe(rule["spec"]["taint"]["effect"].str(), progress);
  const std::string_view status = wanted.in_progress ? "True" : "False";
  const api::Value current = FindCondition(rule["status"], kType);
  const bool same_status = current["status"].str() == status;
  if (IsReported(rule) && same_status && current["reason"].str() == wanted.reason &&
      current["message"].str() == wanted.message) {
    return std::nullopt;
  }
  api::Draft patch = {{"apiVersion", "resource.k8s.io/v1"}, {"kind", "DeviceTaintRule"}};
  patch["metadata"]["name"] = rule.name();
  patch["metadata"]["uid"] = rule.uid();
  patch["status"]["conditions"] = api::Draft::Array();
  patch["status"]["conditions"].Append(
      {{"type", kType},
       {"status", status},
       {"reason", wanted.reason},
       {"message", wanted.message},
       {"observedGeneration", rule["metadata"]["generation"].integer()},
       {"lastTransitionTime",
        same_status ? std::string(current["lastTransitionTime"].str()) : api::FormatTime(now)}});
  return api::WriteJson(patch.Freeze()->root());
}

}  // namespace drakkar::controllers
