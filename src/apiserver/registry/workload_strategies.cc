#include "apiserver/registry/workload_strategies.h"

#include "api/json/reader.h"
#include "apiserver/registry/pod_template.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/workload.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::FieldErrors;
using api::Value;

constexpr std::string_view kTemplateGeneration = "deprecated.daemonset.template.generation";

// Pods and hostnames are derived from the name, so it should be a DNS label.
std::vector<std::string> NameWarnings(Value object) {
  const api::Problems problems = api::CheckDnsLabel(object["metadata"]["name"].str());
  if (problems.empty()) return {};
  return {
      StrCat("metadata.name: this is used in Pod names and hostnames, which can result in "
             "surprising behavior; a DNS label is recommended: [",
             Join(problems, " "), "]")};
}

// What all workloads have in common; a kind adds Check and CheckStatus.
class WorkloadStrategy : public Strategy {
 public:
  void Default(Draft& object, const StrategyContext&) const override { DefaultPodTemplate(object); }
  void DefaultStatus(Draft&, const StrategyContext&) const final {}
  FieldErrors Validate(Value object, const StrategyContext& context) const final {
    return Check(object, Value(), context);
  }
  FieldErrors ValidateUpdate(Value object, Value before, std::string_view subresource,
                             const StrategyContext& context) const final {
    FieldErrors errors;
    if (subresource == "status") {
      CheckStatus(errors, object["status"], before["status"]);
      return errors;
    }
    return Check(object, before, context);
  }

 private:
  virtual FieldErrors Check(Value object, Value before, const StrategyContext& context) const = 0;
  virtual void CheckStatus(FieldErrors& errors, Value status, Value before) const = 0;
};

class DeploymentStrategy final : public WorkloadStrategy {
 public:
  // Annotations are copied to ReplicaSets.
  bool AnnotationsRaiseGeneration() const override { return true; }
  std::vector<std::string> Warnings(Value object, const StrategyContext& context) const override {
    return context.verb == Verb::kCreate ? NameWarnings(object) : std::vector<std::string>();
  }

 private:
  FieldErrors Check(Value object, Value before, const StrategyContext& context) const override {
    return ValidateDeployment(object, before, context);
  }
  void CheckStatus(FieldErrors& errors, Value status, Value before) const override {
    CheckNotGreater(errors, status, {"updatedReplicas", "readyReplicas", "availableReplicas"},
                    "replicas", "status.replicas");
    CheckNotGreater(errors, status, {"availableReplicas"}, "readyReplicas", "readyReplicas");
    CheckCollisionCount(errors, status, before);
  }
};

class ReplicaSetStrategy final : public WorkloadStrategy {
 public:
  std::vector<std::string> Warnings(Value object, const StrategyContext& context) const override {
    return context.verb == Verb::kCreate ? NameWarnings(object) : std::vector<std::string>();
  }

 private:
  FieldErrors Check(Value object, Value before, const StrategyContext& context) const override {
    return ValidateReplicaSet(object, before, context);
  }
  void CheckStatus(FieldErrors& errors, Value status, Value) const override {
    CheckNotGreater(errors, status, {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"},
                    "replicas", "status.replicas");
    CheckNotGreater(errors, status, {"availableReplicas"}, "readyReplicas", "readyReplicas");
  }
};

class DaemonSetStrategy final : public WorkloadStrategy {
 public:
  // An annotation that counts template changes. It predates metadata.generation, and old clients
  // read it.
  void PrepareForCreate(Draft& object, const StrategyContext&) const override {
    Draft& count = object["metadata"]["annotations"].Entry(kTemplateGeneration);
    if (ParseInt64(count.str()).value_or(0) < 1) count = "1";
  }
  void PrepareForUpdate(Draft& object, Value before, std::string_view subresource,
                        const StrategyContext&) const override {
    if (subresource == "status") return;
    const api::TreePtr made = object["spec"]["template"].Freeze();
    const bool same = api::Equal(made->root(), before["spec"]["template"]);
    const std::int64_t count =
        ParseInt64(before["metadata"]["annotations"].Entry(kTemplateGeneration).str()).value_or(0);
    object["metadata"]["annotations"].Entry(kTemplateGeneration) = StrCat(count + (same ? 0 : 1));
  }

 private:
  FieldErrors Check(Value object, Value before, const StrategyContext& context) const override {
    return ValidateDaemonSet(object, before, context);
  }
  void CheckStatus(FieldErrors& errors, Value status, Value before) const override {
    CheckCollisionCount(errors, status, before);
  }
};

class StatefulSetStrategy final : public WorkloadStrategy {
 public:
  void Default(Draft& object, const StrategyContext& context) const override {
    WorkloadStrategy::Default(object, context);
    Draft& strategy = object["spec"]["updateStrategy"];
    if (!strategy["type"].str().empty()) return;
    // If no type is given, the parameters of the default type are set as well.
    strategy["type"] = "RollingUpdate";
    Draft& rolling = strategy["rollingUpdate"];
    if (!rolling["partition"].has_value()) rolling["partition"] = 0;
    if (!rolling["maxUnavailable"].has_value()) rolling["maxUnavailable"] = 1;
  }
  std::vector<std::string> Warnings(Value object, const StrategyContext&) const override {
    if (object["spec"]["revisionHistoryLimit"].integer() >= 0) return {};
    return {
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value "
        ">= 0 is recommended"};
  }

 private:
  FieldErrors Check(Value object, Value before, const StrategyContext& context) const override {
    return ValidateStatefulSet(object, before, context);
  }
  void CheckStatus(FieldErrors& errors, Value status, Value before) const override {
    CheckNotGreater(errors, status,
                    {"readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"},
                    "replicas", "status.replicas");
    CheckNotGreater(errors, status, {"availableReplicas"}, "readyReplicas", "status.readyReplicas");
    CheckCollisionCount(errors, status, before);
  }
};

class ControllerRevisionStrategy final : public Strategy {
 public:
  FieldErrors Validate(Value object, const StrategyContext&) const override {
    const Value data = object["data"];
    if (!data.has_value()) return {Required("data", "data is mandatory")};
    const Result<api::TreePtr> parsed = api::ParseJson(data.str(), {.refuse_duplicates = false});
    if (!parsed.ok()) {
      return {Invalid("data", "<value omitted>",
                      StrCat("error parsing data: ", parsed.error().message))};
    }
    if (!(*parsed)->root().has_value()) return {Required("data", "data is mandatory")};
    if (!(*parsed)->root().is_object()) {
      return {Required("data", "data must be a valid JSON object")};
    }
    return {};
  }
};

class ReplicationControllerStrategy final : public WorkloadStrategy {
 public:
  // Older than owner references: its pods are orphaned unless the request says otherwise.
  std::string_view DefaultPropagation() const override { return "Orphan"; }
  void Default(Draft& object, const StrategyContext& context) const override {
    WorkloadStrategy::Default(object, context);
    Draft& labels = object["spec"]["template"]["metadata"]["labels"];
    if (labels.size() == 0) return;
    if (object["spec"]["selector"].size() == 0) object["spec"]["selector"] = labels;
    if (object["metadata"]["labels"].size() == 0) object["metadata"]["labels"] = labels;
  }

 private:
  FieldErrors Check(Value object, Value before, const StrategyContext& context) const override {
    FieldErrors errors;
    const Value spec = object["spec"];
    if (spec["selector"].empty()) errors.push_back(Required("spec.selector"));
    if (!spec["template"].has_value()) {
      errors.push_back(Required("spec.template"));
      return errors;
    }
    const Value labels = spec["template"]["metadata"]["labels"];
    for (const auto& [key, name, value] : spec["selector"].members()) {
      if (labels.Entry(name).exists() && labels.Entry(name).str() == value.str()) continue;
      errors.push_back(Invalid("spec.template.metadata.labels", labels,
                               "`selector` does not match template `labels`"));
      break;
    }
    CheckWorkloadTemplate(errors, spec["template"], before["spec"]["template"],
                          "ReplicationController", context);
    return errors;
  }
  void CheckStatus(FieldErrors& errors, Value status, Value) const override {
    CheckNotGreater(errors, status, {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"},
                    "replicas", "status.replicas");
    CheckNotGreater(errors, status, {"availableReplicas"}, "readyReplicas", "readyReplicas");
  }
};

class PodTemplateStrategy final : public Strategy {
 public:
  void Default(Draft& object, const StrategyContext&) const override {
    if (Draft* spec = object["template"].Find("spec")) DefaultPodSpec(*spec);
  }
  FieldErrors Validate(Value object, const StrategyContext& context) const override {
    return ValidateUpdate(object, Value(), "", context);
  }
  FieldErrors ValidateUpdate(Value object, Value before, std::string_view,
                             const StrategyContext& context) const override {
    FieldErrors errors;
    CheckPodTemplate(errors, object["template"], before["template"], "template", context);
    return errors;
  }
};

}  // namespace

const Strategy* WorkloadStrategyFor(std::string_view group, std::string_view kind) {
  static const DeploymentStrategy deployment;
  static const ReplicaSetStrategy replica_set;
  static const DaemonSetStrategy daemon_set;
  static const StatefulSetStrategy stateful_set;
  static const ControllerRevisionStrategy revision;
  static const ReplicationControllerStrategy replication_controller;
  static const PodTemplateStrategy pod_template;
  if (group.empty() && kind == "ReplicationController") return &replication_controller;
  if (group.empty()) return kind == "PodTemplate" ? &pod_template : nullptr;
  if (group != "apps") return nullptr;
  if (kind == "Deployment") return &deployment;
  if (kind == "ReplicaSet") return &replica_set;
  if (kind == "DaemonSet") return &daemon_set;
  if (kind == "StatefulSet") return &stateful_set;
  if (kind == "ControllerRevision") return &revision;
  return nullptr;
}

}  // namespace drakkar::apiserver
