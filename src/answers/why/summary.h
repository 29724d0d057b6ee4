#pragma once

#include "answers/why/why.h"

namespace drakkar::answers {

// Writes the one sentence that comes first; after Redact.
void Summarize(WhyAnswer& answer, WallTime now);

}  // namespace drakkar::answers
