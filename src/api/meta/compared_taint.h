#pragma once

#include <string_view>

#include "api/meta/names.h"

// The toleration operators Gt and Lt (gate TaintTolerationComparisonOperators): the taint's value
// is greater or less than that of the toleration.
namespace drakkar::api {

bool IsComparison(std::string_view toleration_operator);
// What is wrong with a toleration's value for these operators. A value is an integer as one would
// write it by hand: no leading zeros, no plus sign.
Problems CheckComparedValue(std::string_view value);
// False if the operator is another one, or one of the values is no such integer.
bool ComparesTaint(std::string_view toleration_operator, std::string_view toleration_value,
                   std::string_view taint_value);

}  // namespace drakkar::api
