#pragma once

#include "api/tree/draft.h"

namespace drakkar::apiserver {

// The defaults of a pod's spec that depend on other fields, the same in pods and in templates of
// them: pull policies follow the image's tag, a volume without a source is an empty directory, and
// the old name of the service account repeats the new one. The others are in schema/.
void DefaultPodSpec(api::Draft& spec);

// The same for the template in spec.template of a workload.
void DefaultPodTemplate(api::Draft& workload);

}  // namespace drakkar::apiserver
