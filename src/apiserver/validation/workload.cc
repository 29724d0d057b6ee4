#include "apiserver/validation/workload.h"

#include <unordered_set>

#include "api/meta/label_selector.h"
#include "api/tree/draft.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/metadata.h"
#include "apiserver/validation/persistent_volume.h"
#include "apiserver/validation/pod.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::Value;

void Append(FieldErrors& errors, FieldErrors more) {
  errors.Append(std::move(more));
}

void CheckDeploymentStrategy(FieldErrors& errors, Value strategy) {
  const std::string_view type = strategy["type"].str();
  const Value rolling = strategy["rollingUpdate"];
  if (type == "Recreate") {
    if (rolling.has_value()) {
      errors.push_back(Forbidden("spec.strategy.rollingUpdate",
                                 "may not be specified when strategy `type` is 'Recreate'"));
    }
    return;
  }
  if (type != "RollingUpdate") {
    api::FieldError error = NotSupported("spec.strategy", "", {"Recreate", "RollingUpdate"});
    error.value = api::BadValue(strategy);
    errors.push_back(std::move(error));
    return;
  }
  if (IntOrPercentNumber(rolling["maxUnavailable"]) == 0 &&
      IntOrPercentNumber(rolling["maxSurge"]) == 0) {
    errors.push_back(Invalid("spec.strategy.rollingUpdate.maxUnavailable",
                             rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0"));
  }
  CheckAtMost100Percent(errors, "spec.strategy.rollingUpdate.maxUnavailable",
                        rolling["maxUnavailable"]);
}

void CheckDaemonSetStrategy(FieldErrors& errors, Value strategy) {
  const std::string_view type = strategy["type"].str();
  if (type == "OnDelete") return;
  if (type != "RollingUpdate") {
    api::FieldError error = NotSupported("spec.updateStrategy", "", {"RollingUpdate", "OnDelete"});
    error.value = api::BadValue(strategy);
    errors.push_back(std::move(error));
    return;
  }
  const std::string at = "spec.updateStrategy.rollingUpdate";
  const Value unavailable = strategy["rollingUpdate"]["maxUnavailable"];
  const Value surge = strategy["rollingUpdate"]["maxSurge"];
  CheckAtMost100Percent(errors, at + ".maxUnavailable", unavailable);
  CheckAtMost100Percent(errors, at + ".maxSurge", surge);
  const bool has_unavailable = IntOrPercentNumber(unavailable) != 0;
  const bool has_surge = IntOrPercentNumber(surge) != 0;
  if (has_unavailable && has_surge) {
    errors.push_back(
        Invalid(at + ".maxSurge", surge, "may not be set when maxUnavailable is non-zero"));
  } else if (!has_unavailable && !has_surge) {
    errors.push_back(Required(at + ".maxUnavailable", "cannot be 0 when maxSurge is 0"));
  }
}

void CheckStatefulSetStrategy(FieldErrors& errors, Value strategy) {
  const std::string_view type = strategy["type"].str();
  const Value rolling = strategy["rollingUpdate"];
  if (type == "OnDelete") {
    if (rolling.has_value()) {
      errors.push_back(Invalid("spec.updateStrategy.rollingUpdate", rolling,
                               "only allowed for updateStrategy 'RollingUpdate'"));
    }
    return;
  }
  if (type != "RollingUpdate") {
    errors.push_back(
        Invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'"));
    return;
  }
  const Value unavailable = rolling["maxUnavailable"];
  if (!unavailable.has_value()) return;
  const std::string at = "spec.updateStrategy.rollingUpdate.maxUnavailable";
  if (IntOrPercentNumber(unavailable) == 0) {
    errors.push_back(Invalid(at, unavailable, "cannot be 0"));
  }
  CheckAtMost100Percent(errors, at, unavailable);
}

// The template as the pods will have it: the controller sets hostname and subdomain, and adds a
// volume for each claim template.
api::TreePtr StatefulTemplate(Value spec) {
  api::Draft made(spec["template"]);
  api::Draft& pod = made["spec"];
  pod.Remove("subdomain");
  pod.Remove("hostname");
  const Value claims = spec["volumeClaimTemplates"];
  if (!claims.empty()) {
    api::Draft volumes = api::Draft::Array();
    std::unordered_set<std::string_view> names;
    for (Value claim : claims.elements()) names.insert(claim["metadata"]["name"].str());
    const auto is_claimed = [&](std::string_view name) { return names.contains(name); };
    for (Value claim : claims.elements()) {
      const std::string name(claim["metadata"]["name"].str());
      volumes.Append(api::Draft{{"name", name}, {"persistentVolumeClaim", {{"claimName", name}}}});
    }
    for (Value volume : spec["template"]["spec"]["volumes"].elements()) {
      if (!is_claimed(volume["name"].str())) volumes.Append(api::Draft(volume));
    }
    pod["volumes"] = std::move(volumes);
  }
  return made.Freeze();
}

}  // namespace

std::int64_t IntOrPercentNumber(Value value) {
  if (const auto number = value.optional_integer()) return *number;
  std::string_view text = value.str();
  if (!text.ends_with('%')) return 0;
  text.remove_suffix(1);
  return ParseInt64(text).value_or(0);
}

void CheckAtMost100Percent(FieldErrors& errors, std::string_view path, Value value) {
  if (!value.is_string() || IntOrPercentNumber(value) <= 100) return;
  errors.push_back(Invalid(path, value.str(), "must not be greater than 100%"));
}

void CheckPodTemplate(FieldErrors& errors, Value pod_template, Value before,
                      const std::string& path, const StrategyContext& context) {
  Findings metadata;
  // In Kubernetes these paths lack the "metadata".
  CheckLabels(metadata, api::FieldPath(path + ".labels"), pod_template["metadata"]["labels"]);
  CheckAnnotations(metadata, api::FieldPath(path + ".annotations"),
                   pod_template["metadata"]["annotations"]);
  Append(errors, PlainErrors(metadata));
  Append(errors, ValidatePodSpec(pod_template["spec"], before["spec"], path + ".spec", context));
  if (!pod_template["spec"]["ephemeralContainers"].empty()) {
    errors.push_back(Forbidden(path + ".spec.ephemeralContainers",
                               "ephemeral containers not allowed in pod template"));
  }
}

void CheckWorkloadTemplate(FieldErrors& errors, Value pod_template, Value before,
                           std::string_view workload, const StrategyContext& context) {
  const std::string path = "spec.template";
  CheckPodTemplate(errors, pod_template, before, path, context);
  const Value spec = pod_template["spec"];
  if (spec["restartPolicy"].str() != "Always") {
    errors.push_back(
        NotSupported(path + ".spec.restartPolicy", spec["restartPolicy"].str(), {"Always"}));
  }
  if (spec["activeDeadlineSeconds"].has_value()) {
    errors.push_back(Forbidden(path + ".spec.activeDeadlineSeconds",
                               StrCat("activeDeadlineSeconds in ", workload, " is not Supported")));
  }
}

void CheckWorkloadSelector(FieldErrors& errors, Value spec, std::string_view workload) {
  const Value selector = spec["selector"];
  if (selector.has_value() && selector["matchLabels"].empty() &&
      selector["matchExpressions"].empty()) {
    errors.push_back(
        Invalid("spec.selector", selector, StrCat("empty selector is invalid for ", workload)));
    return;
  }
  const Result<api::LabelSelector> parsed = api::LabelSelector::FromObject(selector);
  const Value labels = spec["template"]["metadata"]["labels"];
  // Errors in the selector itself are reported by its own rules.
  if (!parsed.ok() || parsed->Matches(labels)) return;
  errors.push_back(Invalid("spec.template.metadata.labels", labels,
                           "`selector` does not match template `labels`"));
}

FieldErrors ValidateDeployment(Value object, Value before, const StrategyContext& context) {
  FieldErrors errors;
  const Value spec = object["spec"];
  CheckWorkloadSelector(errors, spec, "deployment");
  CheckWorkloadTemplate(errors, spec["template"], before["spec"]["template"], "ReplicaSet",
                        context);
  CheckDeploymentStrategy(errors, spec["strategy"]);
  const std::int64_t deadline = spec["progressDeadlineSeconds"].integer();
  if (deadline <= spec["minReadySeconds"].integer()) {
    errors.push_back(
        Invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"));
  }
  return errors;
}

FieldErrors ValidateReplicaSet(Value object, Value before, const StrategyContext& context) {
  FieldErrors errors;
  CheckWorkloadSelector(errors, object["spec"], "deployment");
  CheckWorkloadTemplate(errors, object["spec"]["template"], before["spec"]["template"],
                        "ReplicaSet", context);
  return errors;
}

FieldErrors ValidateDaemonSet(Value object, Value before, const StrategyContext& context) {
  FieldErrors errors;
  CheckWorkloadSelector(errors, object["spec"], "daemonset");
  CheckWorkloadTemplate(errors, object["spec"]["template"], before["spec"]["template"], "DaemonSet",
                        context);
  CheckDaemonSetStrategy(errors, object["spec"]["updateStrategy"]);
  return errors;
}

FieldErrors ValidateStatefulSet(Value object, Value before, const StrategyContext& context) {
  FieldErrors errors;
  const Value spec = object["spec"];
  const std::string_view policy = spec["podManagementPolicy"].str();
  if (policy != "OrderedReady" && policy != "Parallel") {
    errors.push_back(
        Invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"));
  }
  CheckStatefulSetStrategy(errors, spec["updateStrategy"]);
  // The name is immutable, so one that was accepted earlier is not checked again.
  if (!before.exists() && !spec["serviceName"].str().empty()) {
    AddProblems(errors, "spec.serviceName", spec["serviceName"].str(),
                api::CheckDnsLabel(spec["serviceName"].str()));
  }
  // The templates are immutable, so those that were accepted earlier are not checked again.
  if (!before.exists()) {
    std::size_t index = 0;
    for (const Value claim : spec["volumeClaimTemplates"].elements()) {
      const api::FieldPath at = api::FieldPath("spec.volumeClaimTemplates").Index(index++);
      CheckVolumeClaimSpec(errors, at.Child("spec"), claim["spec"]);
    }
  }
  CheckWorkloadSelector(errors, spec, "statefulset");
  const api::TreePtr old_template = before.exists() ? StatefulTemplate(before["spec"]) : nullptr;
  CheckWorkloadTemplate(errors, StatefulTemplate(spec)->root(),
                        old_template == nullptr ? Value() : old_template->root(), "StatefulSet",
                        context);
  return errors;
}

void CheckNotGreater(FieldErrors& errors, Value status, api::FieldNames smaller,
                     api::FieldName larger, std::string_view shown) {
  const std::int64_t limit = status[larger].integer();
  for (const api::FieldName field : smaller) {
    const std::int64_t number = status[field].integer();
    if (number <= limit) continue;
    errors.push_back(
        Invalid(StrCat("status.", field.view()), number, StrCat("cannot be greater than ", shown)));
  }
}

void CheckCollisionCount(FieldErrors& errors, Value status, Value before) {
  const std::int64_t count = status["collisionCount"].integer();
  if (count >= before["collisionCount"].integer()) return;
  errors.push_back(Invalid("status.collisionCount", count, "cannot be decremented"));
}

}  // namespace drakkar::apiserver
