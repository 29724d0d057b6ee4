#pragma once

#include <string_view>

#include "api/meta/field_error.h"
#include "apiserver/request/strategy_context.h"

// What the kinds that make pods have in common: a selector, a template of a pod, a strategy for
// updates. Rules that a field can state alone are in schema/.
namespace drakkar::apiserver {

// spec.template: labels, annotations and the pod's spec. Pods of controllers run until somebody
// deletes them: `workload` ("ReplicaSet") names the kind in the refusal of a deadline.
void CheckWorkloadTemplate(api::FieldErrors& errors, api::Value pod_template,
                           std::string_view workload, const StrategyContext& context);
// The template itself, without the rules for pods that run forever.
void CheckPodTemplate(api::FieldErrors& errors, api::Value pod_template, const std::string& path,
                      const StrategyContext& context);

// spec.selector, which must not be empty, against the labels of spec.template. `workload` is the
// kind in lower case. A missing selector matches nothing.
void CheckWorkloadSelector(api::FieldErrors& errors, api::Value spec, std::string_view workload);

// 25% of 10 is 25; 3 is 3. What is neither is 0.
std::int64_t IntOrPercentNumber(api::Value value);
void CheckAtMost100Percent(api::FieldErrors& errors, std::string_view path, api::Value value);

api::FieldErrors ValidateDeployment(api::Value object, const StrategyContext& context);
api::FieldErrors ValidateReplicaSet(api::Value object, const StrategyContext& context);
api::FieldErrors ValidateDaemonSet(api::Value object, const StrategyContext& context);
api::FieldErrors ValidateStatefulSet(api::Value object, api::Value before,
                                     const StrategyContext& context);

// Of a status: none of `smaller` is above `larger`; messages name it as `shown`.
void CheckNotGreater(api::FieldErrors& errors, api::Value status, api::FieldNames smaller,
                     api::FieldName larger, std::string_view shown);
void CheckCollisionCount(api::FieldErrors& errors, api::Value status, api::Value before);

}  // namespace drakkar::apiserver
