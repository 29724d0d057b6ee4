#pragma once

#include <string>
#include <string_view>

#include "answers/render/devices.h"
#include "answers/why/why.h"

namespace drakkar::answers {

// The summary sentence, then nodes grouped by reason, who holds the missing devices, what the pod
// waits for, and what would help. Also node by node if the answer has that.
std::string RenderWhy(const WhyAnswer& answer, const RenderOptions& options);

// The same as JSON: an object. A `text` that is not empty is added to it.
std::string WhyToJson(const WhyAnswer& answer, std::string_view text = {});

}  // namespace drakkar::answers
