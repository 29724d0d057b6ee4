#include "apiserver/registry/job_strategies.h"

#include <limits>

#include "apiserver/registry/pod_template.h"
#include "apiserver/validation/job.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::FieldErrors;
using api::Value;

void SetIfAbsent(Draft& object, std::string_view member, Draft value) {
  Draft& slot = object.Entry(member);
  if (!slot.has_value()) slot = std::move(value);
}

class JobStrategy final : public Strategy {
 public:
  // If a client that deletes a Job sets no policy, the pods are orphaned. This predates owner
  // references, and clients rely on it.
  std::string_view DefaultPropagation() const override { return "Orphan"; }

  // Not in schema/, because the Job template of a CronJob has the same struct but no defaults.
  void Default(Draft& object, const StrategyContext&) const override {
    Draft& spec = object["spec"];
    if (!spec.is_object()) return;
    const bool serial = !spec["completions"].has_value() && !spec["parallelism"].has_value();
    if (serial) spec["completions"] = 1;
    SetIfAbsent(spec, "parallelism", 1);
    SetIfAbsent(
        spec, "backoffLimit",
        spec["backoffLimitPerIndex"].has_value() ? std::numeric_limits<std::int32_t>::max() : 6);
    SetIfAbsent(spec, "completionMode", "NonIndexed");
    SetIfAbsent(spec, "suspend", false);
    SetIfAbsent(spec, "podReplacementPolicy",
                spec["podFailurePolicy"].has_value() ? "Failed" : "TerminatingOrFailed");
    SetIfAbsent(spec, "manualSelector", false);
    DefaultPodTemplate(object);
    Draft& labels = spec["template"]["metadata"]["labels"];
    if (labels.size() > 0 && object["metadata"]["labels"].size() == 0) {
      object["metadata"]["labels"] = labels;
    }
  }
  void DefaultStatus(Draft&, const StrategyContext&) const override {}

  // Unless manualSelector is set, a Job selects its pods by its own UID.
  void PrepareForCreate(Draft& object, const StrategyContext&) const override {
    Draft& spec = object["spec"];
    if (spec["manualSelector"].boolean()) return;
    const std::string name(object["metadata"]["name"].str());
    const std::string uid(object["metadata"]["uid"].str());
    Draft& labels = spec["template"]["metadata"]["labels"];
    SetIfAbsent(labels, "job-name", name);
    SetIfAbsent(labels, "batch.kubernetes.io/job-name", name);
    SetIfAbsent(labels, "controller-uid", uid);
    SetIfAbsent(labels, "batch.kubernetes.io/controller-uid", uid);
    SetIfAbsent(spec["selector"]["matchLabels"], "batch.kubernetes.io/controller-uid", uid);
  }

  FieldErrors Validate(Value object, const StrategyContext& context) const override {
    return ValidateJob(object, context);
  }
  FieldErrors ValidateUpdate(Value object, Value before, std::string_view subresource,
                             const StrategyContext& context) const override {
    if (subresource == "status") return ValidateJobStatusUpdate(object, before);
    return ValidateJobUpdate(object, before, context);
  }

  std::vector<std::string> Warnings(Value object, const StrategyContext& context) const override {
    if (context.verb != Verb::kCreate) return {};
    const api::Problems problems = api::CheckDnsLabel(object["metadata"]["name"].str());
    if (problems.empty()) return {};
    return {
        StrCat("metadata.name: this is used in Pod names and hostnames, which can result in "
               "surprising behavior; a DNS label is recommended: [",
               Join(problems, " "), "]")};
  }
};

class CronJobStrategy final : public Strategy {
 public:
  void Default(Draft& object, const StrategyContext&) const override {
    Draft* spec = object.Find("spec");
    Draft* job = spec == nullptr ? nullptr : spec->Find("jobTemplate");
    if (job != nullptr) DefaultPodTemplate(*job);
  }
  void DefaultStatus(Draft&, const StrategyContext&) const override {}
  FieldErrors Validate(Value object, const StrategyContext& context) const override {
    return ValidateCronJob(object, Value(), context);
  }
  FieldErrors ValidateUpdate(Value object, Value before, std::string_view subresource,
                             const StrategyContext& context) const override {
    return subresource == "status" ? FieldErrors() : ValidateCronJob(object, before, context);
  }
};

}  // namespace

const Strategy* BatchStrategyFor(std::string_view kind) {
  static const JobStrategy job;
  static const CronJobStrategy cron_job;
  if (kind == "Job") return &job;
  if (kind == "CronJob") return &cron_job;
  return nullptr;
}

}  // namespace drakkar::apiserver
