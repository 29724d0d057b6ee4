#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result/result.h"

namespace drakkar::node {

// A longer file of variables is an error.
inline constexpr std::size_t kMaxEnvironmentFileBytes = 1 << 20;

// The value of a variable in a file of lines NAME='value', as `fileKeyRef` reads it. A value is
// taken literally up to the next quote and may have several lines. Empty lines and comments (#) are
// skipped. Nothing if the file has no such variable, or an empty one.
Result<std::optional<std::string>> FindVariable(std::string_view text, std::string_view name);

}  // namespace drakkar::node
