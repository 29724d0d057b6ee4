#include "apiserver/registry/network_strategies.h"

#include "apiserver/conversion/autoscaler_versions.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/endpoints.h"
#include "apiserver/validation/network.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::FieldErrors;
using api::Value;

class NetworkPolicyStrategy final : public Strategy {
 public:
  void Default(Draft& object, const StrategyContext&) const override {
    Draft& spec = object["spec"];
    if (!spec.is_object() || spec["policyTypes"].size() > 0) return;
    spec["policyTypes"] = Draft::Array();
    spec["policyTypes"].Append("Ingress");
    if (spec["egress"].size() > 0) spec["policyTypes"].Append("Egress");
  }
  FieldErrors Validate(Value object, const StrategyContext&) const override {
    return ValidateNetworkPolicy(object, Value());
  }
  FieldErrors ValidateUpdate(Value object, Value before, std::string_view,
                             const StrategyContext&) const override {
    return ValidateNetworkPolicy(object, before);
  }
};

class IngressStrategy final : public Strategy {
 public:
  FieldErrors Validate(Value object, const StrategyContext&) const override {
    return ValidateIngress(object, Value());
  }
  FieldErrors ValidateUpdate(Value object, Value before, std::string_view subresource,
                             const StrategyContext&) const override {
    if (subresource == "status") return ValidateIngressStatus(object);
    return ValidateIngress(object, before);
  }
};

class IngressClassStrategy final : public Strategy {
 public:
  FieldErrors Validate(Value object, const StrategyContext&) const override {
    return ValidateIngressClass(object);
  }
  FieldErrors ValidateUpdate(Value object, Value, std::string_view,
                             const StrategyContext& context) const override {
    return Validate(object, context);
  }
};

class EndpointsStrategy final : public Strategy {
 public:
  FieldErrors Validate(Value object, const StrategyContext&) const override {
    return ValidateEndpoints(object, Value());
  }
  FieldErrors ValidateUpdate(Value object, Value before, std::string_view,
                             const StrategyContext&) const override {
    return ValidateEndpoints(object, before);
  }
};

class EndpointSliceStrategy final : public Strategy {
 public:
  FieldErrors Validate(Value object, const StrategyContext&) const override {
    return ValidateEndpointSlice(object, Value());
  }
  FieldErrors ValidateUpdate(Value object, Value before, std::string_view,
                             const StrategyContext&) const override {
    return ValidateEndpointSlice(object, before);
  }
};

class AutoscalerStrategy final : public Strategy {
 public:
  void Default(Draft& object, const StrategyContext&) const override {
    Draft& spec = object["spec"];
    // In autoscaling/v1 annotations may hold more metrics, so the conversion sets the default.
    if (!spec.is_object() || object["apiVersion"].str() != kStoredVersion) return;
    if (spec["metrics"].size() == 0) {
      constexpr int kUtilization = 80;
      spec["metrics"] = Draft::Array();
      spec["metrics"].Append(
          {{"type", "Resource"},
           {"resource",
            {{"name", "cpu"},
             {"target", {{"type", "Utilization"}, {"averageUtilization", kUtilization}}}}}});
    }
    Draft* behavior = spec.Find("behavior");
    if (behavior == nullptr || !behavior->is_object()) return;
    DefaultRules((*behavior)["scaleUp"], true);
    DefaultRules((*behavior)["scaleDown"], false);
  }
  void PrepareForCreate(Draft& object, const StrategyContext&) const override {
    DropAutoscalerAnnotations(object);
  }
  void PrepareForUpdate(Draft& object, Value, std::string_view,
                        const StrategyContext&) const override {
    DropAutoscalerAnnotations(object);
  }
  FieldErrors Validate(Value object, const StrategyContext&) const override {
    const Value spec = object["spec"];
    FieldErrors errors;
    if (spec["maxReplicas"].integer() < spec["minReplicas"].integer()) {
      errors.push_back(Invalid("spec.maxReplicas", spec["maxReplicas"].integer(),
                               "must be greater than or equal to `minReplicas`"));
    }
    if (spec["minReplicas"].optional_integer() == 0 && !CanScaleFromZero(spec)) {
      errors.push_back(Forbidden("spec.metrics",
                                 "must specify at least one Object or External metric to support "
                                 "scaling to zero replicas"));
    }
    return errors;
  }
  FieldErrors ValidateUpdate(Value object, Value, std::string_view subresource,
                             const StrategyContext& context) const override {
    return subresource == "status" ? FieldErrors() : Validate(object, context);
  }

 private:
  static constexpr std::string_view kStoredVersion = "autoscaling/v2";

  // Metrics of pods say nothing while there are none.
  static bool CanScaleFromZero(Value spec) {
    for (const Value metric : spec["metrics"].elements()) {
      const std::string_view type = metric["type"].str();
      if (type == "Object" || type == "External") return true;
    }
    return false;
  }
  static void DefaultRules(Draft& rules, bool up) {
    constexpr int kPeriodSeconds = 15;
    if (up && !rules["stabilizationWindowSeconds"].has_value()) {
      rules["stabilizationWindowSeconds"] = 0;
    }
    if (!rules["selectPolicy"].has_value()) rules["selectPolicy"] = "Max";
    if (rules["policies"].has_value()) return;
    rules["policies"] = Draft::Array();
    if (up) {
      rules["policies"].Append({{"type", "Pods"}, {"value", 4}, {"periodSeconds", kPeriodSeconds}});
    }
    rules["policies"].Append(
        {{"type", "Percent"}, {"value", 100}, {"periodSeconds", kPeriodSeconds}});
  }
};

}  // namespace

const Strategy* NetworkStrategyFor(std::string_view group, std::string_view kind) {
  static const NetworkPolicyStrategy policy;
  static const IngressStrategy ingress;
  static const IngressClassStrategy ingress_class;
  static const EndpointsStrategy endpoints;
  static const EndpointSliceStrategy slice;
  static const AutoscalerStrategy autoscaler;
  if (group == "autoscaling" && kind == "HorizontalPodAutoscaler") return &autoscaler;
  if (group.empty() && kind == "Endpoints") return &endpoints;
  if (group == "discovery.k8s.io" && kind == "EndpointSlice") return &slice;
  if (group != "networking.k8s.io") return nullptr;
  if (kind == "NetworkPolicy") return &policy;
  if (kind == "Ingress") return &ingress;
  if (kind == "IngressClass") return &ingress_class;
  return nullptr;
}

}  // namespace drakkar::apiserver
