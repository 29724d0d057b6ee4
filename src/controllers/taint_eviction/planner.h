#pragma once

#include <optional>

#include "api/meta/object.h"
#include "base/env/clock.h"

namespace drakkar::controllers {

// How long a pod tolerates the NoExecute taints of its node: the shortest tolerationSeconds of the
// tolerations that apply, zero if a taint is not tolerated, nullopt if all are for ever. Pure.
std::optional<Duration> ToleranceOf(const api::Object& pod, const api::Object& node);

}  // namespace drakkar::controllers
