#include "apiserver/conversion/autoscaler_versions.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/codec/object_reader.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/meta/quantity.h"
#include "api/schema/schema.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::Value;

constexpr std::string_view kV1 = "autoscaling/v1";
constexpr std::string_view kV2 = "autoscaling/v2";

constexpr std::string_view kMetrics = "autoscaling.alpha.kubernetes.io/metrics";
constexpr std::string_view kCurrentMetrics = "autoscaling.alpha.kubernetes.io/current-metrics";
constexpr std::string_view kConditions = "autoscaling.alpha.kubernetes.io/conditions";
constexpr std::string_view kBehavior = "autoscaling.alpha.kubernetes.io/behavior";
// Once held the tolerances of the behavior.
constexpr std::string_view kDownTolerance = "autoscaling.alpha.kubernetes.io/scale-down-tolerance";
constexpr std::string_view kUpTolerance = "autoscaling.alpha.kubernetes.io/scale-up-tolerance";
constexpr std::array kAnnotations = {kMetrics,  kCurrentMetrics, kConditions,
                                     kBehavior, kDownTolerance,  kUpTolerance};

constexpr int kDefaultUtilization = 80;
constexpr std::string_view kCpu = "cpu";
constexpr std::string_view kNoQuantity = "0";

Draft CopyOf(Value value) {
  return value.has_value() ? Draft(value) : Draft();
}

// A quantity that v1 always writes.
Draft QuantityOf(Value value) {
  return value.has_value() ? Draft(value) : Draft(kNoQuantity);
}

bool IsCpuUtilization(Value metric) {
  const Value resource = metric["resource"];
  return metric["type"].str() == "Resource" && resource["name"].str() == kCpu &&
         resource["target"]["averageUtilization"].has_value();
}

Draft CpuUtilization(std::int64_t percent) {
  return {
      {"type", "Resource"},
      {"resource",
       {{"name", kCpu}, {"target", {{"type", "Utilization"}, {"averageUtilization", percent}}}}}};
}

// --- v2 to v1 ---

// Members in the order in which Go writes them: others read the text.

Draft ReferenceOf(Value object) {
  return {{"kind", object["kind"].str()},
          {"name", object["name"].str()},
          {"apiVersion", CopyOf(object["apiVersion"])}};
}

Draft OldMetric(Value metric) {
  Draft old = {{"type", metric["type"].str()}};
  if (const Value object = metric["object"]; object.has_value()) {
    old["object"] = {{"target", ReferenceOf(object["describedObject"])},
                     {"metricName", object["metric"]["name"].str()},
                     {"targetValue", QuantityOf(object["target"]["value"])},
                     {"selector", CopyOf(object["metric"]["selector"])},
                     {"averageValue", CopyOf(object["target"]["averageValue"])}};
  }
  if (const Value pods = metric["pods"]; pods.has_value()) {
    old["pods"] = {{"metricName", pods["metric"]["name"].str()},
                   {"targetAverageValue", QuantityOf(pods["target"]["averageValue"])},
                   {"selector", CopyOf(pods["metric"]["selector"])}};
  }
  const auto add_resource = [&](api::FieldName field) {
    const Value resource = metric[field];
    if (!resource.has_value()) return;
    old[field] = {{"name", resource["name"].str()},
                  {"targetAverageUtilization", CopyOf(resource["target"]["averageUtilization"])},
                  {"targetAverageValue", CopyOf(resource["target"]["averageValue"])},
                  {"container", CopyOf(resource["container"])}};
  };
  add_resource("resource");
  add_resource("containerResource");
  if (const Value external = metric["external"]; external.has_value()) {
    old["external"] = {{"metricName", external["metric"]["name"].str()},
                       {"metricSelector", CopyOf(external["metric"]["selector"])},
                       {"targetValue", CopyOf(external["target"]["value"])},
                       {"targetAverageValue", CopyOf(external["target"]["averageValue"])}};
  }
  return old;
}

Draft OldMetricStatus(Value metric) {
  Draft old = {{"type", metric["type"].str()}};
  if (const Value object = metric["object"]; object.has_value()) {
    old["object"] = {{"target", ReferenceOf(object["describedObject"])},
                     {"metricName", object["metric"]["name"].str()},
                     {"currentValue", QuantityOf(object["current"]["value"])},
                     {"selector", CopyOf(object["metric"]["selector"])},
                     {"averageValue", CopyOf(object["current"]["averageValue"])}};
  }
  if (const Value pods = metric["pods"]; pods.has_value()) {
    old["pods"] = {{"metricName", pods["metric"]["name"].str()},
                   {"currentAverageValue", QuantityOf(pods["current"]["averageValue"])},
                   {"selector", CopyOf(pods["metric"]["selector"])}};
  }
  const auto add_resource = [&](api::FieldName field) {
    const Value resource = metric[field];
    if (!resource.has_value()) return;
    old[field] = {{"name", resource["name"].str()},
                  {"currentAverageUtilization", CopyOf(resource["current"]["averageUtilization"])},
                  {"currentAverageValue", QuantityOf(resource["current"]["averageValue"])},
                  {"container", CopyOf(resource["container"])}};
  };
  add_resource("resource");
  add_resource("containerResource");
  if (const Value external = metric["external"]; external.has_value()) {
    old["external"] = {{"metricName", external["metric"]["name"].str()},
                       {"metricSelector", CopyOf(external["metric"]["selector"])},
                       {"currentValue", QuantityOf(external["current"]["value"])},
                       {"currentAverageValue", CopyOf(external["current"]["averageValue"])}};
  }
  return old;
}

// The behavior is written with the names of Go's fields. Each has its name in v2.
struct BehaviorName {
  std::string_view old;
  std::string_view name;
};
constexpr BehaviorName kDirections[] = {{"ScaleUp", "scaleUp"}, {"ScaleDown", "scaleDown"}};
constexpr BehaviorName kRules[] = {{"StabilizationWindowSeconds", "stabilizationWindowSeconds"},
                                   {"SelectPolicy", "selectPolicy"},
                                   {"Policies", "policies"},
                                   {"Tolerance", "tolerance"}};
constexpr BehaviorName kPolicy[] = {
    {"Type", "type"}, {"Value", "value"}, {"PeriodSeconds", "periodSeconds"}};

Draft OldBehavior(Value behavior) {
  Draft old = Draft::Object();
  for (const BehaviorName& direction : kDirections) {
    Draft& to = old.Entry(direction.old);
    to = nullptr;
    const Value rules = behavior.Entry(direction.name);
    if (!rules.has_value()) continue;
    for (const BehaviorName& rule : kRules) {
      const Value value = rules.Entry(rule.name);
      Draft& copy = to.Entry(rule.old);
      copy = nullptr;
      if (value.is_array()) {
        copy = Draft::Array();
        for (const Value policy : value.elements()) {
          Draft made = Draft::Object();
          for (const BehaviorName& field : kPolicy) {
            made.Entry(field.old) = CopyOf(policy.Entry(field.name));
          }
          copy.Append(std::move(made));
        }
      } else if (value.has_value()) {
        copy = Draft(value);
      }
    }
  }
  return old;
}

// --- v1 to v2 ---

const api::StructSchema& TypeNamed(std::string_view name) {
  return *api::FindStruct(StrCat("io.k8s.api.autoscaling.", name));
}

// The list in an annotation, each element of this type; nullopt if it is something else.
std::optional<std::vector<api::TreePtr>> ReadList(Value text, const api::StructSchema& type) {
  const Result<api::TreePtr> read = api::ParseJson(text.str());
  if (!read.ok() || !(*read)->root().is_array()) return std::nullopt;
  std::vector<api::TreePtr> list;
  for (const Value element : (*read)->root().elements()) {
    Result<api::ObjectReadResult> typed =
        api::ConvertObject(element, type, {.strictness = api::Strictness::kIgnore});
    if (!typed.ok()) return std::nullopt;
    list.push_back(std::move(typed->tree));
  }
  return list;
}

bool IsZero(Value quantity) {
  if (!quantity.has_value()) return true;
  const Result<api::Quantity> read = api::Quantity::Parse(quantity.str());
  return read.ok() && read->IsZero();
}

Draft Identifier(Value name, Value selector) {
  return {{"name", name.str()}, {"selector", CopyOf(selector)}};
}

Draft NewMetric(Value old) {
  Draft metric = {{"type", old["type"].str()}};
  if (const Value object = old["object"]; object.has_value()) {
    const bool is_average = object["averageValue"].has_value();
    Draft value = QuantityOf(object["targetValue"]);
    // v1 cannot leave it out.
    if (is_average && IsZero(object["targetValue"])) value = Draft();
    metric["object"] = {{"describedObject", ReferenceOf(object["target"])},
                        {"target",
                         {{"type", is_average ? "AverageValue" : "Value"},
                          {"value", std::move(value)},
                          {"averageValue", CopyOf(object["averageValue"])}}},
                        {"metric", Identifier(object["metricName"], object["selector"])}};
  }
  if (const Value pods = old["pods"]; pods.has_value()) {
    metric["pods"] = {
        {"metric", Identifier(pods["metricName"], pods["selector"])},
        {"target",
         {{"type", "AverageValue"}, {"averageValue", QuantityOf(pods["targetAverageValue"])}}}};
  }
  const auto add_resource = [&](api::FieldName field) {
    const Value resource = old[field];
    if (!resource.has_value()) return;
    const Value utilization = resource["targetAverageUtilization"];
    metric[field] = {{"name", resource["name"].str()},
                     {"target",
                      {{"type", utilization.has_value() ? "Utilization" : "AverageValue"},
                       {"averageValue", CopyOf(resource["targetAverageValue"])},
                       {"averageUtilization", CopyOf(utilization)}}},
                     {"container", CopyOf(resource["container"])}};
  };
  add_resource("resource");
  add_resource("containerResource");
  if (const Value external = old["external"]; external.has_value()) {
    const Value value = external["targetValue"];
    metric["external"] = {
        {"metric", Identifier(external["metricName"], external["metricSelector"])},
        {"target",
         {{"type", value.has_value() ? "Value" : "AverageValue"},
          {"value", CopyOf(value)},
          {"averageValue", CopyOf(external["targetAverageValue"])}}}};
  }
  return metric;
}

Draft NewMetricStatus(Value old) {
  Draft metric = {{"type", old["type"].str()}};
  if (const Value object = old["object"]; object.has_value()) {
    metric["object"] = {{"metric", Identifier(object["metricName"], object["selector"])},
                        {"current",
                         {{"value", QuantityOf(object["currentValue"])},
                          {"averageValue", CopyOf(object["averageValue"])}}},
                        {"describedObject", ReferenceOf(object["target"])}};
  }
  if (const Value pods = old["pods"]; pods.has_value()) {
    metric["pods"] = {{"metric", Identifier(pods["metricName"], pods["selector"])},
                      {"current", {{"averageValue", QuantityOf(pods["currentAverageValue"])}}}};
  }
  const auto add_resource = [&](api::FieldName field) {
    const Value resource = old[field];
    if (!resource.has_value()) return;
    metric[field] = {{"name", resource["name"].str()},
                     {"current",
                      {{"averageValue", QuantityOf(resource["currentAverageValue"])},
                       {"averageUtilization", CopyOf(resource["currentAverageUtilization"])}}},
                     {"container", CopyOf(resource["container"])}};
  };
  add_resource("resource");
  add_resource("containerResource");
  if (const Value external = old["external"]; external.has_value()) {
    metric["external"] = {
        {"metric", Identifier(external["metricName"], external["metricSelector"])},
        {"current",
         {{"value", QuantityOf(external["currentValue"])},
          {"averageValue", CopyOf(external["currentAverageValue"])}}}};
  }
  return metric;
}

// Go's decoder does not distinguish upper and lower case.
Value FindAnyCase(Value object, std::string_view name) {
  Value found;
  for (const auto& [key, member, value] : object.members()) {
    if (ToLower(member) == ToLower(name)) found = value;
  }
  return found;
}

Draft NewBehavior(Value text) {
  const Result<api::TreePtr> read = api::ParseJson(text.str());
  if (!read.ok() || !(*read)->root().is_object()) return {};
  Draft behavior = Draft::Object();
  for (const BehaviorName& direction : kDirections) {
    const Value rules = FindAnyCase((*read)->root(), direction.old);
    if (!rules.has_value()) continue;
    Draft& to = behavior.Entry(direction.name);
    to = Draft::Object();
    for (const BehaviorName& rule : kRules) {
      const Value value = FindAnyCase(rules, rule.old);
      if (!value.has_value()) continue;
      if (!value.is_array()) {
        to.Entry(rule.name) = Draft(value);
        continue;
      }
      Draft policies = Draft::Array();
      for (const Value policy : value.elements()) {
        Draft made = Draft::Object();
        for (const BehaviorName& field : kPolicy) {
          made.Entry(field.name) = CopyOf(FindAnyCase(policy, field.old));
        }
        policies.Append(std::move(made));
      }
      to.Entry(rule.name) = std::move(policies);
    }
  }
  if (behavior.size() == 0) return {};
  // It is what somebody wrote into an annotation.
  static const api::StructSchema& type = TypeNamed("v2.HorizontalPodAutoscalerBehavior");
  Result<api::ObjectReadResult> typed =
      api::ConvertObject(behavior.Freeze()->root(), type, {.strictness = api::Strictness::kIgnore});
  return typed.ok() ? Draft(typed->tree) : Draft();
}

void Annotate(Draft& object, std::string_view name, const Draft& value) {
  object["metadata"]["annotations"].Entry(name) = api::WriteJson(value.Freeze()->root());
}

}  // namespace

void DropAutoscalerAnnotations(Draft& object) {
  Draft* metadata = object.Find("metadata");
  Draft* annotations =
      metadata == nullptr || !metadata->is_object() ? nullptr : metadata->Find("annotations");
  if (annotations == nullptr || !annotations->is_object()) return;
  bool any = false;
  for (const std::string_view name : kAnnotations) any = any || annotations->HasEntry(name);
  if (!any) return;
  for (const std::string_view name : kAnnotations) annotations->RemoveEntry(name);
  if (annotations->size() == 0) metadata->Remove("annotations");
}

api::TreePtr AutoscalerToV1(const api::TreePtr& autoscaler) {
  const Value from = autoscaler->root();
  if (from["apiVersion"].str() == kV1) return autoscaler;
  const Value spec = from["spec"];
  const Value status = from["status"];
  Draft to(autoscaler);
  to["apiVersion"] = kV1;
  DropAutoscalerAnnotations(to);

  Draft others = Draft::Array();
  std::optional<std::int64_t> cpu;
  for (const Value metric : spec["metrics"].elements()) {
    if (!IsCpuUtilization(metric)) {
      others.Append(OldMetric(metric));
    } else if (!cpu) {
      cpu = metric["resource"]["target"]["averageUtilization"].integer();
    }
  }
  if (spec.is_object()) {
    to["spec"] = {{"scaleTargetRef", CopyOf(spec["scaleTargetRef"])},
                  {"minReplicas", CopyOf(spec["minReplicas"])},
                  {"maxReplicas", CopyOf(spec["maxReplicas"])},
                  {"targetCPUUtilizationPercentage", cpu ? Draft(*cpu) : Draft()}};
  }
  if (others.size() > 0) Annotate(to, kMetrics, others);

  Draft current_metrics = Draft::Array();
  Draft current_cpu;
  for (const Value metric : status["currentMetrics"].elements()) {
    current_metrics.Append(OldMetricStatus(metric));
    const Value resource = metric["resource"];
    const Value percent = resource["current"]["averageUtilization"];
    if (metric["type"].str() == "Resource" && resource["name"].str() == kCpu &&
        percent.has_value()) {
      current_cpu = Draft(percent);
    }
  }
  // Clients expect the numbers of replicas even if they are zero.
  to["status"] = {{"observedGeneration", CopyOf(status["observedGeneration"])},
                  {"lastScaleTime", CopyOf(status["lastScaleTime"])},
                  {"currentReplicas", status["currentReplicas"].integer()},
                  {"desiredReplicas", status["desiredReplicas"].integer()},
                  {"currentCPUUtilizationPercentage", std::move(current_cpu)}};
  if (current_metrics.size() > 0) Annotate(to, kCurrentMetrics, current_metrics);
  if (spec["behavior"].has_value()) Annotate(to, kBehavior, OldBehavior(spec["behavior"]));
  if (!status["conditions"].empty()) {
    Annotate(to, kConditions, CopyOf(status["conditions"]));
  }
  return to.Freeze();
}

api::TreePtr AutoscalerToV2(const api::TreePtr& autoscaler) {
  const Value from = autoscaler->root();
  if (from["apiVersion"].str() == kV2) return autoscaler;
  static const api::StructSchema& metric_type = TypeNamed("v1.MetricSpec");
  static const api::StructSchema& status_type = TypeNamed("v1.MetricStatus");
  static const api::StructSchema& condition_type = TypeNamed("v1.HorizontalPodAutoscalerCondition");
  const Value annotations = from["metadata"]["annotations"];
  const Value spec = from["spec"];
  const Value status = from["status"];
  Draft to(autoscaler);
  to["apiVersion"] = kV2;

  if (spec.is_object()) {
    Draft metrics = Draft::Array();
    if (const auto others = ReadList(annotations.Entry(kMetrics), metric_type)) {
      for (const api::TreePtr& old : *others) {
        Draft metric = NewMetric(old->root());
        metric.KeepAlive(old);
        metrics.Append(std::move(metric));
      }
    }
    if (const auto percent = spec["targetCPUUtilizationPercentage"].optional_integer()) {
      metrics.Append(CpuUtilization(*percent));
    }
    if (metrics.size() == 0) metrics.Append(CpuUtilization(kDefaultUtilization));
    to["spec"] = {{"scaleTargetRef", CopyOf(spec["scaleTargetRef"])},
                  {"minReplicas", CopyOf(spec["minReplicas"])},
                  {"maxReplicas", CopyOf(spec["maxReplicas"])},
                  {"metrics", Draft(metrics.Freeze())},
                  {"behavior", NewBehavior(annotations.Entry(kBehavior))}};
  }

  Draft current_metrics = Draft::Array();
  if (const auto all = ReadList(annotations.Entry(kCurrentMetrics), status_type)) {
    for (const api::TreePtr& old : *all) {
      Draft metric = NewMetricStatus(old->root());
      metric.KeepAlive(old);
      current_metrics.Append(std::move(metric));
    }
  } else if (const auto percent = status["currentCPUUtilizationPercentage"].optional_integer()) {
    current_metrics.Append(
        {{"type", "Resource"},
         {"resource", {{"name", kCpu}, {"current", {{"averageUtilization", *percent}}}}}});
  }
  Draft conditions = Draft::Array();
  if (const auto all = ReadList(annotations.Entry(kConditions), condition_type)) {
    for (const api::TreePtr& condition : *all) conditions.Append(Draft(condition));
  }
  if (status.is_object() || current_metrics.size() > 0 || conditions.size() > 0) {
    to["status"] = {
        {"observedGeneration", CopyOf(status["observedGeneration"])},
        {"lastScaleTime", CopyOf(status["lastScaleTime"])},
        {"currentReplicas", CopyOf(status["currentReplicas"])},
        {"desiredReplicas", CopyOf(status["desiredReplicas"])},
        {"currentMetrics", current_metrics.size() > 0 ? Draft(current_metrics.Freeze()) : Draft()},
        {"conditions", conditions.size() > 0 ? std::move(conditions) : Draft()}};
  }
  DropAutoscalerAnnotations(to);
  return to.Freeze();
}

}  // namespace drakkar::apiserver
