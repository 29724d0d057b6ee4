#pragma once

#include <string_view>

#include "api/tree/draft.h"
#include "base/env/clock.h"

namespace drakkar::apiserver {

// Applies the defaults of the given version to an object of resource.k8s.io. The kind is taken from
// the object; `now` is the default time of taints.
void SetResourceDefaults(api::Draft& object, std::string_view version, WallTime now);

}  // namespace drakkar::apiserver
