#pragma once

#include <memory>

#include "apiserver/rest/core.h"

namespace drakkar {
class Metrics;
}

namespace drakkar::apiserver {

// Counts and times an admission step, under the name it has in Kubernetes:
// apiserver_admission_controller_admission_duration_seconds{name,operation,rejected,type}.
std::unique_ptr<AdmissionStep> Measured(std::unique_ptr<AdmissionStep> step, std::string_view type,
                                        Metrics& metrics);

}  // namespace drakkar::apiserver
