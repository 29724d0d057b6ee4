#include "apiserver/validation/job.h"

#include <set>

#include "api/meta/label_selector.h"
#include "api/meta/names.h"
#include "api/schedule/cron_schedule.h"
#include "api/tree/draft.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/workload.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::Value;

constexpr std::int64_t kMaxIndexedParallelism = 100'000;
constexpr std::int64_t kMaxFailedIndexes = 100'000;
constexpr std::int64_t kManyCompletions = 100'000;
constexpr std::int64_t kMaxForManyCompletions = 10'000;
constexpr std::size_t kMaxManagedBy = 63;
constexpr std::size_t kMaxCronJobName = 52;

std::string At(const std::string& path, std::size_t index) {
  return StrCat(path, "[", index, "]");
}

// An error about a whole rule. The message omits the rule's value.
api::FieldError InvalidRule(const std::string& path, std::string_view detail) {
  return api::FieldError::Invalid(api::FieldPath(path), api::BadValue::Omitted(),
                                  std::string(detail));
}

void CheckExitCodes(FieldErrors& errors, Value codes, const std::string& path,
                    const std::set<std::string_view>& containers) {
  const Value container = codes["containerName"];
  if (container.has_value() && !containers.contains(container.str())) {
    errors.push_back(
        Invalid(path + ".containerName", container.str(),
                "must be one of the container or initContainer names in the pod template"));
  }
  const Value values = codes["values"];
  if (values.empty()) {
    errors.push_back(Invalid(path + ".values", values, "at least one value is required"));
  }
  std::set<std::int64_t> seen;
  bool ordered = true;
  std::size_t index = 0;
  std::int64_t previous = 0;
  for (Value value : values.elements()) {
    const std::string at = At(path + ".values", index);
    const std::int64_t code = value.integer();
    if (codes["operator"].str() == "In" && code == 0) {
      errors.push_back(Invalid(at, code, "must not be 0 for the In operator"));
    }
    if (!seen.insert(code).second) {
      errors.push_back(api::FieldError::Duplicate(api::FieldPath(at), code));
    }
    if (index > 0 && previous > code) ordered = false;
    previous = code;
    ++index;
  }
  if (!ordered) errors.push_back(Invalid(path + ".values", values, "must be ordered"));
}

void CheckFailurePolicy(FieldErrors& errors, Value spec, const std::string& path) {
  std::set<std::string_view> containers;
  for (const api::FieldName list : api::FieldNames{"containers", "initContainers"}) {
    for (Value each : spec["template"]["spec"][list].elements()) {
      containers.insert(each["name"].str());
    }
  }
  std::size_t index = 0;
  for (Value rule : spec["podFailurePolicy"]["rules"].elements()) {
    const std::string at = At(path + ".podFailurePolicy.rules", index++);
    if (rule["action"].str() == "FailIndex" && !spec["backoffLimitPerIndex"].has_value()) {
      errors.push_back(Invalid(at + ".action", rule["action"].str(),
                               "requires the backoffLimitPerIndex to be set"));
    }
    const bool codes = rule["onExitCodes"].has_value();
    const bool conditions = !rule["onPodConditions"].empty();
    if (codes) CheckExitCodes(errors, rule["onExitCodes"], at + ".onExitCodes", containers);
    if (codes && conditions) {
      errors.push_back(
          InvalidRule(at, "specifying both OnExitCodes and OnPodConditions is not supported"));
    } else if (!codes && !conditions) {
      errors.push_back(
          InvalidRule(at, "specifying one of OnExitCodes and OnPodConditions is required"));
    }
  }
}

// Parses "0,2-4", numbers and ranges in ascending order. Returns the number of indexes.
Result<std::int64_t> CountIndexes(std::string_view text, std::int64_t completions) {
  std::int64_t total = 0;
  if (text.empty()) return total;
  std::int64_t last = -1;
  for (std::string_view part : Split(text, ',')) {
    std::vector<std::int64_t> ends;
    for (std::string_view end : Split(part, '-')) {
      const auto number = ParseInt64(end);
      if (!number) {
        return InvalidArgument(StrCat("cannot convert string to integer for index: ", Quote(end)));
      }
      if (*number >= completions) {
        return InvalidArgument(StrCat("too large index: ", Quote(end)));
      }
      ends.push_back(*number);
    }
    if (ends.size() > 2) {
      return InvalidArgument(StrCat("the fragment ", Quote(part),
                                    " violates the requirement that an index interval can have at "
                                    "most two parts separated by '-'"));
    }
    if (ends.front() <= last) {
      return InvalidArgument(
          StrCat("non-increasing order, previous: ", last, ", current: ", ends.front()));
    }
    if (ends.size() == 2 && ends[1] <= ends[0]) {
      return InvalidArgument(
          StrCat("non-increasing order, previous: ", ends[0], ", current: ", ends[1]));
    }
    total += ends.back() - ends.front() + 1;
    last = ends.back();
  }
  return total;
}

void CheckSuccessPolicy(FieldErrors& errors, Value spec, const std::string& path) {
  const Value policy = spec["successPolicy"];
  if (spec["completionMode"].str() != "Indexed") {
    errors.push_back(Invalid(path + ".successPolicy", policy, "requires indexed completion mode"));
    return;
  }
  const std::string rules = path + ".successPolicy.rules";
  if (policy["rules"].empty()) {
    errors.push_back(Required(
        rules, "at least one rules must be specified when the successPolicy is specified"));
  }
  const std::int64_t completions = spec["completions"].integer();
  std::size_t index = 0;
  for (Value rule : policy["rules"].elements()) {
    const std::string at = At(rules, index++);
    const Value indexes = rule["succeededIndexes"];
    const Value count = rule["succeededCount"];
    if (!indexes.has_value() && !count.has_value()) {
      errors.push_back(
          Required(at, "at least one of succeededCount or succeededIndexes must be specified"));
    }
    std::int64_t total = 0;
    if (indexes.has_value()) {
      const Result<std::int64_t> counted = CountIndexes(indexes.str(), completions);
      if (counted.ok()) {
        total = *counted;
      } else {
        errors.push_back(
            Invalid(at + ".succeededIndexes", indexes.str(),
                    StrCat("error parsing succeededIndexes: ", counted.error().message)));
      }
    }
    if (!count.has_value()) continue;
    if (count.integer() > completions) {
      errors.push_back(Invalid(at + ".succeededCount", count.integer(),
                               StrCat("must be less than or equal to ", completions,
                                      " (the number of specified completions)")));
    }
    if (indexes.has_value() && count.integer() > total) {
      errors.push_back(
          Invalid(at + ".succeededCount", count.integer(),
                  StrCat("must be less than or equal to ", total,
                         " (the number of indexes in the specified succeededIndexes field)")));
    }
  }
}

void CheckIndexed(FieldErrors& errors, Value spec, const std::string& path) {
  const Value completions = spec["completions"];
  const Value parallelism = spec["parallelism"];
  const Value most_failed = spec["maxFailedIndexes"];
  if (!completions.has_value()) {
    errors.push_back(Required(path + ".completions", "when completion mode is Indexed"));
  }
  if (parallelism.integer() > kMaxIndexedParallelism) {
    errors.push_back(Invalid(path + ".parallelism", parallelism.integer(),
                             StrCat("must be less than or equal to ", kMaxIndexedParallelism,
                                    " when completion mode is Indexed")));
  }
  if (completions.has_value() && most_failed.integer() > completions.integer()) {
    errors.push_back(Invalid(path + ".maxFailedIndexes", most_failed.integer(),
                             "must be less than or equal to completions"));
  }
  if (most_failed.integer() > kMaxFailedIndexes) {
    errors.push_back(Invalid(path + ".maxFailedIndexes", most_failed.integer(),
                             StrCat("must be less than or equal to ", kMaxFailedIndexes)));
  }
  if (completions.integer() <= kManyCompletions || !spec["backoffLimitPerIndex"].has_value()) {
    return;
  }
  if (!most_failed.has_value()) {
    errors.push_back(
        Required(path + ".maxFailedIndexes",
                 StrCat("must be specified when completions is above ", kManyCompletions)));
  }
  const std::string limit = StrCat("must be less than or equal to ", kMaxForManyCompletions,
                                   " when completions are above ", kManyCompletions,
                                   " and used with backoff limit per index");
  for (const auto& [field, value] :
       {std::pair("parallelism", parallelism), std::pair("maxFailedIndexes", most_failed)}) {
    if (value.integer() > kMaxForManyCompletions) {
      errors.push_back(Invalid(StrCat(path, ".", field), value.integer(), limit));
    }
  }
}

void CheckRestartPolicy(FieldErrors& errors, Value spec, const std::string& path) {
  const std::string at = path + ".template.spec.restartPolicy";
  const std::string_view policy = spec["template"]["spec"]["restartPolicy"].str();
  if (policy == "Always" || policy.empty()) {
    errors.push_back(Required(at, R"(valid values: "OnFailure", "Never")"));
  } else if (policy != "OnFailure" && policy != "Never") {
    errors.push_back(NotSupported(at, policy, {"OnFailure", "Never"}));
  } else if (spec["podFailurePolicy"].has_value() && policy != "Never") {
    errors.push_back(
        Invalid(at, policy, R"(only "Never" is supported when podFailurePolicy is specified)"));
  }
}

// Checks the spec of a Job or of a Job template. On update, `before` is the current one.
void CheckJobSpec(FieldErrors& errors, Value spec, Value before, const std::string& path,
                  const StrategyContext& context) {
  const Value per_index = spec["backoffLimitPerIndex"];
  const Value most_failed = spec["maxFailedIndexes"];
  if (most_failed.has_value() && !per_index.has_value()) {
    errors.push_back(
        Required(path + ".backoffLimitPerIndex", "when maxFailedIndexes is specified"));
  }
  if (const Value manager = spec["managedBy"]; manager.has_value()) {
    if (manager.str().find('/') == std::string_view::npos) {
      errors.push_back(Invalid(path + ".managedBy", manager.str(),
                               "must be a domain-prefixed path (such as \"acme.io/foo\")"));
    }
    if (manager.str().size() > kMaxManagedBy) {
      errors.push_back(
          api::FieldError::TooLong(api::FieldPath(path + ".managedBy"), kMaxManagedBy));
    }
  }
  if (spec["completionMode"].str() == "Indexed") {
    CheckIndexed(errors, spec, path);
  } else {
    for (const auto& [field, value] : {std::pair("backoffLimitPerIndex", per_index),
                                       std::pair("maxFailedIndexes", most_failed)}) {
      if (!value.has_value()) continue;
      errors.push_back(
          Invalid(StrCat(path, ".", field), value.integer(), "requires indexed completion mode"));
    }
  }
  if (spec["podFailurePolicy"].has_value()) CheckFailurePolicy(errors, spec, path);
  if (spec["successPolicy"].has_value()) CheckSuccessPolicy(errors, spec, path);
  const std::string_view replacement = spec["podReplacementPolicy"].str();
  if (spec["podFailurePolicy"].has_value() && replacement == "TerminatingOrFailed") {
    errors.push_back(NotSupported(path + ".podReplacementPolicy", replacement, {"Failed"}));
  }
  CheckPodTemplate(errors, spec["template"], before["template"], path + ".template", context);
  CheckRestartPolicy(errors, spec, path);
}

void CheckHasLabel(FieldErrors& errors, Value labels, std::string_view name,
                   std::string_view expected) {
  const std::string path = "spec.template.metadata.labels";
  if (!labels.Entry(name).exists()) {
    errors.push_back(Required(path, StrCat("must be '", expected, "'")));
  } else if (labels.Entry(name).str() != expected) {
    errors.push_back(Invalid(path, labels, StrCat("must be '", expected, "'")));
  }
}

// Checks that a generated selector and its labels identify this Job.
void CheckGeneratedSelector(FieldErrors& errors, Value job) {
  const Value spec = job["spec"];
  if (spec["manualSelector"].boolean() || !spec["selector"].has_value()) return;
  const Value labels = spec["template"]["metadata"]["labels"];
  const std::string_view uid = job["metadata"]["uid"].str();
  const std::string_view name = job["metadata"]["name"].str();
  api::Draft expected = api::Draft::Object();
  for (const auto& [label, value] : {std::pair("controller-uid", uid), std::pair("job-name", name),
                                     std::pair("batch.kubernetes.io/controller-uid", uid),
                                     std::pair("batch.kubernetes.io/job-name", name)}) {
    CheckHasLabel(errors, labels, label, value);
    expected.Entry(label) = value;
  }
  const Result<api::LabelSelector> selector = api::LabelSelector::FromObject(spec["selector"]);
  if (selector.ok() && !selector->Matches(expected.Freeze()->root())) {
    errors.push_back(Invalid("spec.selector", spec["selector"], "`selector` not auto-generated"));
  }
}

void CheckNameWithIndex(FieldErrors& errors, Value job) {
  const std::int64_t completions = job["spec"]["completions"].integer();
  if (job["spec"]["completionMode"].str() != "Indexed" || completions <= 0) return;
  const std::string_view name = job["metadata"]["name"].str();
  const std::string longest = StrCat(name, "-", completions - 1);
  if (api::CheckDnsLabel(longest).empty()) return;
  errors.push_back(
      Invalid("metadata.name", name,
              StrCat("will not able to create pod with invalid DNS label: ", longest)));
}

void CheckSelector(FieldErrors& errors, Value spec) {
  const Value labels = spec["template"]["metadata"]["labels"];
  const Result<api::LabelSelector> selector = api::LabelSelector::FromObject(spec["selector"]);
  if (!selector.ok() || selector->Matches(labels)) return;
  errors.push_back(Invalid("spec.template.metadata.labels", labels,
                           "`selector` does not match template `labels`"));
}

bool HasCondition(Value job, std::string_view type) {
  for (Value condition : job["status"]["conditions"].elements()) {
    if (condition["type"].str() == type) return condition["status"].str() == "True";
  }
  return false;
}

// Removes the parts of the template that may change while a Job is suspended and has no pods.
api::TreePtr WithoutMutableParts(Value pod_template) {
  api::Draft draft(pod_template);
  draft["metadata"].Remove("labels");
  draft["metadata"].Remove("annotations");
  api::Draft& spec = draft["spec"];
  for (const api::FieldName field :
       api::FieldNames{"nodeSelector", "tolerations", "schedulingGates"}) {
    spec.Remove(field);
  }
  if (api::Draft* affinity = spec.Find("affinity"); affinity != nullptr && affinity->is_object()) {
    affinity->Remove("nodeAffinity");
    bool empty = true;
    for (const auto& [key, value] : affinity->MutableMembers()) empty = empty && !value.exists();
    if (empty) spec.Remove("affinity");
  }
  for (const api::FieldName list : api::FieldNames{"containers", "initContainers"}) {
    api::Draft* containers = spec.Find(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (api::Draft& container : containers->MutableElements()) container.Remove("resources");
  }
  return draft.Freeze();
}

void CheckTemplateUpdate(FieldErrors& errors, Value job, Value before) {
  const Value now = job["spec"]["template"];
  const Value was = before["spec"]["template"];
  if (api::Equal(now, was)) return;
  const bool may_change =
      before["spec"]["suspend"].boolean() &&
      (!before["status"]["startTime"].has_value() || HasCondition(before, "Suspended")) &&
      before["status"]["active"].integer() == 0;
  if (may_change &&
      api::Equal(WithoutMutableParts(now)->root(), WithoutMutableParts(was)->root())) {
    return;
  }
  errors.push_back(Invalid("spec.template", now, "field is immutable"));
}

// The number of completions of an Indexed Job may change together with its parallelism.
void CheckCompletionsUpdate(FieldErrors& errors, Value spec, Value before) {
  if (api::Equal(spec["completions"], before["completions"])) return;
  const bool elastic = spec["completionMode"].str() == "Indexed" &&
                       spec["completions"].has_value() && before["completions"].has_value();
  if (elastic && spec["completions"].integer() == spec["parallelism"].integer()) return;
  if (elastic) {
    errors.push_back(Invalid("spec.completions", spec["completions"].integer(),
                             StrCat("can only be modified in tandem with spec.parallelism")));
    return;
  }
  errors.push_back(Invalid("spec.completions", spec["completions"], "field is immutable"));
}

}  // namespace

FieldErrors ValidateJob(Value job, const StrategyContext& context) {
  FieldErrors errors;
  CheckGeneratedSelector(errors, job);
  CheckJobSpec(errors, job["spec"], Value(), "spec", context);
  CheckSelector(errors, job["spec"]);
  CheckNameWithIndex(errors, job);
  return errors;
}

FieldErrors ValidateJobUpdate(Value job, Value before, const StrategyContext& context) {
  FieldErrors errors;
  CheckJobSpec(errors, job["spec"], before["spec"], "spec", context);
  CheckSelector(errors, job["spec"]);
  CheckCompletionsUpdate(errors, job["spec"], before["spec"]);
  for (const api::FieldName field :
       api::FieldNames{"selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex",
                       "managedBy", "successPolicy"}) {
    const Value value = job["spec"][field];
    if (api::Equal(value, before["spec"][field])) continue;
    errors.push_back(Invalid(StrCat("spec.", field.view()), value, "field is immutable"));
  }
  CheckTemplateUpdate(errors, job, before);
  CheckNameWithIndex(errors, job);
  return errors;
}

FieldErrors ValidateJobStatusUpdate(Value job, Value before) {
  FieldErrors errors;
  const Value status = job["status"];
  const auto refuse = [&](std::string_view field, std::string_view detail) {
    errors.push_back(api::FieldError::Invalid(api::FieldPath(StrCat("status.", field)),
                                              api::BadValue::Omitted(), std::string(detail)));
  };
  const bool complete = HasCondition(job, "Complete");
  const bool failed = HasCondition(job, "Failed");
  const bool target = HasCondition(job, "FailureTarget");
  const bool met = HasCondition(job, "SuccessCriteriaMet");
  if (complete && failed) {
    refuse("conditions", "cannot set Complete=True and Failed=true conditions");
  }
  if (complete && target) {
    refuse("conditions", "cannot set Complete=True and FailureTarget=true conditions");
  }
  if (failed && !target) {
    refuse("conditions",
           "cannot set Failed=True condition without the FailureTarget=true condition");
  }
  if (complete && !met) {
    refuse("conditions",
           "cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
  }
  if (met && target) {
    refuse("conditions", "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
  }
  if (status["completionTime"].has_value() && !complete) {
    errors.push_back(Invalid("status.completionTime", status["completionTime"].str(),
                             "cannot set completionTime when there is no Complete=True condition"));
  }
  if (complete && !status["completionTime"].has_value()) {
    errors.push_back(
        Required("status.completionTime", "completionTime is required for Complete jobs"));
  }
  const std::int64_t active = status["active"].integer();
  if (complete || failed) {
    if (active > 0) {
      errors.push_back(Invalid("status.active", active, "active>0 is invalid for finished job"));
    }
    if (!status["startTime"].has_value()) {
      errors.push_back(Required("status.startTime", "startTime is required for finished job"));
    }
    if (status["terminating"].integer() > 0) {
      errors.push_back(Invalid("status.terminating", status["terminating"].integer(),
                               "terminating>0 is invalid for finished job"));
    }
    const Value uncounted = status["uncountedTerminatedPods"];
    if (!uncounted["succeeded"].empty() || !uncounted["failed"].empty()) {
      errors.push_back(
          Invalid("status.uncountedTerminatedPods", uncounted, "must be empty for finished job"));
    }
  }
  if (status["ready"].integer() > active) {
    errors.push_back(Invalid("status.ready", status["ready"].integer(),
                             "cannot set more ready pods than active"));
  }
  for (std::string_view type : {"Failed", "Complete", "FailureTarget"}) {
    if (HasCondition(before, type) && !HasCondition(job, type)) {
      refuse("conditions", StrCat("cannot disable the terminal ", type, "=True condition"));
    }
  }
  if (HasCondition(before, "SuccessCriteriaMet") && !met) {
    refuse("conditions", "cannot disable the SuccessCriteriaMet=True condition");
  }
  for (const api::FieldName counter : api::FieldNames{"failed", "succeeded"}) {
    if (counter == api::FieldName("succeeded") && job["spec"]["completionMode"].str() == "Indexed")
      continue;
    if (status[counter].integer() < before["status"][counter].integer()) {
      errors.push_back(Invalid(StrCat("status.", counter.view()), status[counter].integer(),
                               StrCat("cannot decrease the ", counter.view(), " counter")));
    }
  }
  return errors;
}

FieldErrors ValidateCronJob(Value cron_job, Value before, const StrategyContext& context) {
  FieldErrors errors;
  const Value spec = cron_job["spec"];
  const std::string_view schedule = spec["schedule"].str();
  if (!schedule.empty()) {
    const bool had_zone = before["spec"]["schedule"].str().find("TZ") != std::string_view::npos;
    const bool has_zone = schedule.find("TZ") != std::string_view::npos;
    if (has_zone && !had_zone) {
      errors.push_back(Invalid("spec.schedule", schedule,
                               "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
    } else if (has_zone && spec["timeZone"].has_value()) {
      errors.push_back(Invalid("spec.schedule", schedule,
                               "cannot use both timeZone field and TZ or CRON_TZ in schedule"));
    } else if (const auto parsed = api::CronSchedule::Parse(schedule); !parsed.ok()) {
      errors.push_back(Invalid("spec.schedule", schedule, parsed.error().message));
    }
  }
  const Value zone = spec["timeZone"];
  if (zone.has_value() && !api::Equal(zone, before["spec"]["timeZone"])) {
    if (std::optional<std::string> why = api::WhyNoTimeZone(zone.str())) {
      errors.push_back(Invalid("spec.timeZone", zone.str(), *why));
    }
  }
  const Value job = spec["jobTemplate"]["spec"];
  CheckJobSpec(errors, job, before["spec"]["jobTemplate"]["spec"], "spec.jobTemplate.spec",
               context);
  if (job["selector"].has_value()) {
    errors.push_back(Invalid("spec.jobTemplate.spec.selector", job["selector"],
                             "`selector` will be auto-generated"));
  }
  if (job["manualSelector"].boolean()) {
    errors.push_back(
        NotSupported("spec.jobTemplate.spec.manualSelector", "true", {"nil", "false"}));
  }
  const std::string_view name = cron_job["metadata"]["name"].str();
  if (!before.exists() && name.size() > kMaxCronJobName) {
    errors.push_back(Invalid("metadata.name", name, "must be no more than 52 characters"));
  }
  return errors;
}

}  // namespace drakkar::apiserver
