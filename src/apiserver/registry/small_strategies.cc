#include "apiserver/registry/small_strategies.h"

#include <set>

#include "api/meta/names.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/container_resources.h"
#include "apiserver/validation/metadata.h"
#include "apiserver/validation/pod_scheduling.h"
#include "apiserver/validation/resource_rules.h"
#include "apiserver/validation/schema_rules.h"
#include "apiserver/validation/value_rules.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::int64_t kHighestUserPriority = 1'000'000'000;
constexpr std::string_view kSystemPrefix = "system-";
struct SystemClass {
  std::string_view name;
  std::int64_t value;
};
constexpr SystemClass kSystemClasses[] = {{"system-node-critical", 2'000'001'000},
                                          {"system-cluster-critical", 2'000'000'000}};

const SystemClass* FindSystemClass(std::string_view name) {
  for (const SystemClass& each : kSystemClasses) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

Result<void> CheckSystemClass(api::Value object) {
  const std::string_view name = object["metadata"]["name"].str();
  const SystemClass* known = FindSystemClass(name);
  if (known == nullptr) {
    return InvalidArgument(StrCat(name, " is not a known system priority class"));
  }
  if (object["value"].integer() != known->value) {
    return InvalidArgument(StrCat("value of ", name, " PriorityClass must be ", known->value));
  }
  if (object["globalDefault"].boolean()) {
    return InvalidArgument(StrCat("globalDefault of ", name, " PriorityClass must be false"));
  }
  return Ok();
}

void CheckNotNegative(api::Value spec, api::FieldName field, api::FieldErrors& errors) {
  const api::Value value = spec[field];
  const std::string path = StrCat("spec.", field);
  if (const std::optional<std::int64_t> number = value.optional_integer()) {
    if (*number < 0) {
      errors.push_back(Invalid(path, *number, "must be greater than or equal to 0"));
    }
    return;
  }
  if (!value.is_string()) return;
  std::string_view text = value.str();
  const std::string_view given = text;
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  const std::optional<std::int64_t> number = percent ? ParseInt64(text) : std::nullopt;
  if (!number || *number < 0) {
    errors.push_back(
        Invalid(path, given,
                "a valid percent string must be a numeric string followed by an ending "
                "'%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"));
  } else if (*number > 100) {
    errors.push_back(Invalid(path, given, "must not be greater than 100%"));
  }
}

}  // namespace

void PriorityClassStrategy::Default(api::Draft& object, const StrategyContext&) const {
  if (object["preemptionPolicy"].str().empty()) object["preemptionPolicy"] = "PreemptLowerPriority";
}

api::FieldErrors PriorityClassStrategy::Validate(api::Value object, const StrategyContext&) const {
  api::FieldErrors errors;
  if (object["metadata"]["name"].str().starts_with(kSystemPrefix)) {
    if (const Result<void> checked = CheckSystemClass(object); !checked.ok()) {
      errors.push_back(Forbidden(
          "metadata.name",
          StrCat("priority class names with '", kSystemPrefix,
                 "' prefix are reserved for system use only. error: ", checked.error().message)));
    }
  } else if (object["value"].integer() > kHighestUserPriority) {
    errors.push_back(Forbidden(
        "value",
        StrCat("maximum allowed value of a user defined priority is ", kHighestUserPriority)));
  }
  const std::string_view policy = object["preemptionPolicy"].str();
  if (policy != "PreemptLowerPriority" && policy != "Never") {
    errors.push_back(NotSupported("preemptionPolicy", policy, {"PreemptLowerPriority", "Never"}));
  }
  return errors;
}

api::FieldErrors PriorityClassStrategy::ValidateUpdate(api::Value object, api::Value before,
                                                       std::string_view,
                                                       const StrategyContext&) const {
  api::FieldErrors errors;
  if (object["value"].integer() != before["value"].integer()) {
    errors.push_back(Forbidden("value", "may not be changed in an update."));
  }
  const std::string_view policy = object["preemptionPolicy"].str();
  if (policy != before["preemptionPolicy"].str("PreemptLowerPriority")) {
    errors.push_back(Invalid("preemptionPolicy", policy, "field is immutable"));
  }
  return errors;
}

std::string_view PriorityClassStrategy::WhyKept(std::string_view name) const {
  return FindSystemClass(name) == nullptr ? ""
                                          : "this is a system priority class and cannot be deleted";
}

api::FieldErrors LeaseStrategy::Validate(api::Value object, const StrategyContext&) const {
  api::FieldErrors errors;
  const api::Value spec = object["spec"];
  if (const auto seconds = spec["leaseDurationSeconds"].optional_integer();
      seconds && *seconds <= 0) {
    errors.push_back(Invalid("spec.leaseDurationSeconds", *seconds, "must be greater than 0"));
  }
  if (const auto count = spec["leaseTransitions"].optional_integer(); count && *count < 0) {
    errors.push_back(
        Invalid("spec.leaseTransitions", *count, "must be greater than or equal to 0"));
  }
  return errors;
}

api::FieldErrors LeaseStrategy::ValidateUpdate(api::Value object, api::Value, std::string_view,
                                               const StrategyContext& context) const {
  return Validate(object, context);
}

api::FieldErrors DisruptionBudgetStrategy::Validate(api::Value object,
                                                    const StrategyContext&) const {
  api::FieldErrors errors;
  const api::Value spec = object["spec"];
  if (spec["minAvailable"].has_value() && spec["maxUnavailable"].has_value()) {
    errors.push_back(Invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"));
  }
  CheckNotNegative(spec, "minAvailable", errors);
  CheckNotNegative(spec, "maxUnavailable", errors);
  const api::FieldPath path("spec");
  if (spec["selector"].has_value()) {
    CheckLabelSelector(errors, path.Child("selector"), spec["selector"]);
  }
  const api::Value policy = spec["unhealthyPodEvictionPolicy"];
  if (policy.has_value()) {
    CheckOneOf(errors, path.Child("unhealthyPodEvictionPolicy"), policy.str(),
               {"AlwaysAllow", "IfHealthyBudget"});
  }
  return errors;
}

api::FieldErrors DisruptionBudgetStrategy::ValidateUpdate(api::Value object, api::Value,
                                                          std::string_view subresource,
                                                          const StrategyContext& context) const {
  if (subresource != "status") return Validate(object, context);
  api::FieldErrors errors;
  const api::Value status = object["status"];
  const api::FieldPath path("status");
  Findings conditions;
  CheckConditions(conditions, path.Child("conditions"), status["conditions"]);
  errors.Append(PlainErrors(conditions));
  for (const api::FieldName field :
       api::FieldNames{"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"}) {
    apiserver::CheckNotNegative(errors, path.Child(field.view()), status[field].integer());
  }
  return errors;
}

api::FieldErrors RuntimeClassStrategy::Validate(api::Value object,
                                                const StrategyContext& context) const {
  api::FieldErrors errors;
  RequireDnsLabel(errors, api::FieldPath("handler"), object["handler"].str());
  const api::Value overhead = object["overhead"]["podFixed"];
  if (!overhead.empty()) CheckOverhead(errors, api::FieldPath("overhead"), overhead);
  const api::Value scheduling = object["scheduling"];
  const api::FieldPath path("scheduling");
  if (!scheduling["nodeSelector"].empty()) {
    Findings labels;
    CheckLabels(labels, path.Child("nodeSelector"), scheduling["nodeSelector"]);
    errors.Append(PlainErrors(labels));
  }
  const api::FieldPath list = path.Child("tolerations");
  CheckTolerations(errors, list, scheduling["tolerations"], context.gates);
  std::set<std::string> seen;
  std::size_t index = 0;
  for (const api::Value toleration : scheduling["tolerations"].elements()) {
    const api::FieldPath at = list.Index(index++);
    std::string identity;
    for (const api::FieldName field : api::FieldNames{"key", "operator", "value", "effect"}) {
      identity += StrCat(toleration[field].str(), "\n");
    }
    if (!seen.insert(std::move(identity)).second) errors.push_back(Duplicate(at, toleration));
  }
  return errors;
}

api::FieldErrors RuntimeClassStrategy::ValidateUpdate(api::Value object, api::Value before,
                                                      std::string_view,
                                                      const StrategyContext&) const {
  if (object["handler"].str() == before["handler"].str()) return {};
  return {Invalid("handler", object["handler"].str(), "field is immutable")};
}

api::FieldErrors EventStrategy::Validate(api::Value object, const StrategyContext& context) const {
  api::FieldErrors errors;
  const bool named = context.group == "events.k8s.io";
  const std::string_view about = object["involvedObject"]["namespace"].str();
  const std::string_view home = object["metadata"]["namespace"].str();
  if (about.empty() ? home != "default" && !home.empty() : about != home) {
    errors.push_back(Invalid("involvedObject.namespace", about, "does not match event.namespace"));
  }
  const bool has_time = object["eventTime"].has_value() && !object["eventTime"].str().empty();
  if (!has_time) {
    if (named) errors.push_back(Required("eventTime"));
    return errors;
  }
  const auto require = [&](api::FieldName field, std::string_view shown) {
    if (object[field].str().empty()) errors.push_back(Required(shown));
  };
  require("reportingComponent", named ? "reportingController" : "reportingComponent");
  AddProblems(errors, named ? "reportingController" : "reportingComponent",
              object["reportingComponent"].str(),
              object["reportingComponent"].str().empty()
                  ? api::Problems()
                  : api::CheckLabelKey(object["reportingComponent"].str()));
  require("reportingInstance", "reportingInstance");
  require("action", "action");
  require("reason", "reason");
  return errors;
}

api::FieldErrors ValidateTaints(api::Value taints) {
  api::FieldErrors errors;
  std::set<std::pair<std::string_view, std::string_view>> seen;
  std::size_t index = 0;
  for (const api::Value taint : taints.elements()) {
    // The path lacks the "spec", as in Kubernetes.
    const std::string path = StrCat("metadata.taints[", index++, "]");
    const std::string_view key = taint["key"].str();
    const std::string_view effect = taint["effect"].str();
    AddProblems(errors, path + ".key", key, api::CheckLabelKey(key));
    if (const api::Problems problems = api::CheckLabelValue(taint["value"].str());
        !problems.empty()) {
      errors.push_back(Invalid(path + ".value", taint["value"].str(), Join(problems, ";")));
    }
    if (effect.empty()) {
      errors.push_back(Required(path + ".effect"));
    } else if (effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute") {
      errors.push_back(
          NotSupported(path + ".effect", effect, {"NoSchedule", "PreferNoSchedule", "NoExecute"}));
    }
    if (!seen.emplace(key, effect).second) {
      api::FieldError twice = api::FieldError::Duplicate(api::FieldPath(path), taint);
      twice.detail = "taints must be unique by key and effect pair";
      errors.push_back(std::move(twice));
    }
  }
  return errors;
}

}  // namespace drakkar::apiserver
