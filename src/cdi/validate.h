#pragma once

#include <string_view>

#include "base/result/result.h"
#include "cdi/spec.h"

namespace drakkar::cdi {

// The lowest version that has all features used by `spec`; at least "0.3.0".
std::string_view MinimumVersion(const Spec& spec);

// Validates names, versions and edits. Each device must have edits; the spec itself need not.
Result<void> ValidateSpec(const Spec& spec);
Result<void> ValidateEdits(const ContainerEdits& edits);

}  // namespace drakkar::cdi
