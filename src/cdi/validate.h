#pragma once

#include <string_view>

#include "base/result/result.h"
#include "cdi/spec.h"

namespace drakkar::cdi {

// The lowest version whose features cover `spec`; "0.3.0" at least.
std::string_view MinimumVersion(const Spec& spec);

// Names, versions and edits. A device must edit something; the spec as a whole need not.
Result<void> ValidateSpec(const Spec& spec);
Result<void> ValidateEdits(const ContainerEdits& edits);

}  // namespace drakkar::cdi
