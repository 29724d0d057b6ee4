#pragma once

#include <string>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::scheduler {

// Whether a NodeAffinity of a configuration file is one that can be evaluated: the API server never
// saw it. The error begins with the field.
Result<void> CheckNodeAffinity(api::Value affinity, const std::string& path);

}  // namespace drakkar::scheduler
