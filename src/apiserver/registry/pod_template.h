#pragma once

#include "api/tree/draft.h"

namespace drakkar::apiserver {

// Applies the defaults of a pod's spec that depend on other fields, in pods and in pod templates:
// pull policies follow the image's tag, a volume without a source is an emptyDir, and the old name
// of the service account field repeats the new one. All other defaults are in schema/.
void DefaultPodSpec(api::Draft& spec);

// The same for the pod template in a workload's spec.template.
void DefaultPodTemplate(api::Draft& workload);

}  // namespace drakkar::apiserver
