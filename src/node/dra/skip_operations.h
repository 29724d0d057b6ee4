#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::node {

// KEP-5945 on the node: which operations to skip for a claim and driver.

inline constexpr std::string_view kSkipAll = "*";
inline constexpr std::string_view kSkipPrepare = "NodePrepareResources";
inline constexpr std::string_view kSkipUnprepare = "NodeUnprepareResources";

// The field `skipNodeOperations` of an allocation result in either form: true means ["*"], false
// and absent mean empty, a list is taken as is. Unknown operations are kept.
std::vector<std::string> ReadSkipField(api::Value field);

// `devices` has one entry per device of the driver in the claim. An operation is skipped only if
// every device skips it ("*" skips all). Sorted.
std::vector<std::string> AggregateSkips(const std::vector<std::vector<std::string>>& devices);

bool Skips(const std::vector<std::string>& aggregate, std::string_view operation);

}  // namespace drakkar::node
