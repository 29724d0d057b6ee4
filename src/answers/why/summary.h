#pragma once

#include "answers/why/why.h"

namespace drakkar::answers {

// Writes the summary sentence. Call it after Redact.
void Summarize(WhyAnswer& answer, WallTime now);

}  // namespace drakkar::answers
