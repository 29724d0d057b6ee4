#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::node {

// KEP-5945 on the node: which operations a driver need not do for a claim.

inline constexpr std::string_view kSkipAll = "*";
inline constexpr std::string_view kSkipPrepare = "NodePrepareResources";
inline constexpr std::string_view kSkipUnprepare = "NodeUnprepareResources";

// The field `skipNodeOperations` of an allocation result in either of its forms: true is ["*"],
// false and absent are empty, a list is itself. Operations we do not know are kept.
std::vector<std::string> ReadSkipField(api::Value field);

// One entry per device of the driver in the claim. An operation is skipped only if every device
// says so; a device with "*" says so for all. Sorted.
std::vector<std::string> AggregateSkips(const std::vector<std::vector<std::string>>& devices);

bool Skips(const std::vector<std::string>& aggregate, std::string_view operation);

}  // namespace drakkar::node
