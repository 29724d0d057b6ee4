#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cel/value/value.h"

namespace drakkar::cel {

// What a call cost, given its arguments and its result.
using CallCost = std::uint64_t (*)(std::span<const Value> args, const Value& result);

// One, whatever the arguments: most calls.
std::uint64_t FlatCost(std::span<const Value> args, const Value& result);

// The rule for a call, chosen once per call site. `overload_id` is empty where several may apply.
CallCost ActualCostOf(std::string_view function, std::string_view overload_id);

}  // namespace drakkar::cel
