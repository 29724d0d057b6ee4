#pragma once

#include <string>
#include <string_view>

#include "api/metadata/device_metadata.h"

namespace drakkar::metadata {

// "sim-0" -> "SIM_0": what a shell takes for the name of a variable.
std::string EnvironmentName(std::string_view text);

// The value as a person would write it; items of a list with `separator` between them.
std::string AttributeText(const AttributeValue& value, std::string_view separator = " ");

}  // namespace drakkar::metadata
