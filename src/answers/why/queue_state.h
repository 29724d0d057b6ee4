#pragma once

#include <string>

#include "scheduler/framework/pod_state.h"

namespace drakkar::answers {

// "tried 3 times, last rejected by DynamicResources; next attempt in 4s". Empty if there is nothing
// to add to the answer.
std::string DescribeState(const scheduler::PodState& state);

}  // namespace drakkar::answers
