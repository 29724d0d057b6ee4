#pragma once

#include <string_view>

#include "api/meta/field_error.h"
#include "apiserver/request/strategy_context.h"

// Rules shared by kinds that create pods: selector, pod template, update strategy. Rules about a
// single field are in schema/.
namespace drakkar::apiserver {

// Checks spec.template: labels, annotations and the pod's spec. Pods of controllers run until they
// are deleted, so activeDeadlineSeconds is rejected; `workload` ("ReplicaSet") names the kind in
// that error. On update, `before` is the current template (pod.h).
void CheckWorkloadTemplate(api::FieldErrors& errors, api::Value pod_template, api::Value before,
                           std::string_view workload, const StrategyContext& context);
// Checks the template itself, without the rules for pods that run forever.
void CheckPodTemplate(api::FieldErrors& errors, api::Value pod_template, api::Value before,
                      const std::string& path, const StrategyContext& context);

// Checks that spec.selector is not empty and matches the labels of spec.template. `workload` is the
// kind in lower case. A missing selector matches nothing.
void CheckWorkloadSelector(api::FieldErrors& errors, api::Value spec, std::string_view workload);

// The number in a percentage or integer: "25%" gives 25, 3 gives 3. Anything else gives 0.
std::int64_t IntOrPercentNumber(api::Value value);
void CheckAtMost100Percent(api::FieldErrors& errors, std::string_view path, api::Value value);

api::FieldErrors ValidateDeployment(api::Value object, api::Value before,
                                    const StrategyContext& context);
api::FieldErrors ValidateReplicaSet(api::Value object, api::Value before,
                                    const StrategyContext& context);
api::FieldErrors ValidateDaemonSet(api::Value object, api::Value before,
                                   const StrategyContext& context);
api::FieldErrors ValidateStatefulSet(api::Value object, api::Value before,
                                     const StrategyContext& context);

// Checks that no field in `smaller` exceeds the field `larger` of the status. Messages call the
// latter `shown`.
void CheckNotGreater(api::FieldErrors& errors, api::Value status, api::FieldNames smaller,
                     api::FieldName larger, std::string_view shown);
void CheckCollisionCount(api::FieldErrors& errors, api::Value status, api::Value before);

}  // namespace drakkar::apiserver
