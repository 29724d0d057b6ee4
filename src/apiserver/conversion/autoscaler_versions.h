#pragma once

#include "api/tree/draft.h"

// HorizontalPodAutoscalers of autoscaling/v2 (the storage version) and of autoscaling/v1. The older
// version has one metric, the utilization of the CPU. Annotations hold everything else: the other
// metrics in the form that v1 once had for them, the conditions, and the behavior. No other version
// shows these annotations, so clients of v1 can write back what they read.
namespace drakkar::apiserver {

// An annotation that does not have the expected form is ignored.
api::TreePtr AutoscalerToV2(const api::TreePtr& autoscaler);
api::TreePtr AutoscalerToV1(const api::TreePtr& autoscaler);
// Removes the annotations that belong to v1.
void DropAutoscalerAnnotations(api::Draft& autoscaler);

}  // namespace drakkar::apiserver
