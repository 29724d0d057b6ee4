#pragma once

#include <string>

#include "answers/render/devices.h"
#include "answers/why/why.h"

namespace drakkar::answers {

// The sentence, then nodes grouped by reason, who holds what is missing, what is waited for and
// what would help; node by node if the answer has them.
std::string RenderWhy(const WhyAnswer& answer, const RenderOptions& options);

// The same as JSON: an object.
std::string WhyToJson(const WhyAnswer& answer);

}  // namespace drakkar::answers
