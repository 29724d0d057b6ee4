#pragma once

#include <string>
#include <string_view>

#include "api/metadata/device_metadata.h"

namespace drakkar::metadata {

// "sim-0" -> "SIM_0": a valid name for a shell variable.
std::string EnvironmentName(std::string_view text);

// The value in readable form; list items are joined with `separator`.
std::string AttributeText(const AttributeValue& value, std::string_view separator = " ");

}  // namespace drakkar::metadata
