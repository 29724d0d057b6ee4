#pragma once

#include <string_view>

#include "api/tree/draft.h"
#include "base/env/clock.h"

namespace drakkar::apiserver {

// Fills in what a client left out of an object of resource.k8s.io in the given version. The kind is
// taken from the object; `now` becomes the time of taints that have none.
void SetResourceDefaults(api::Draft& object, std::string_view version, WallTime now);

}  // namespace drakkar::apiserver
