#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace drakkar::cel {

// What is wrong with an expression, and where: `offset` counts bytes from its start.
struct Issue {
  std::int32_t offset = 0;
  std::string message;
};

// Renders issues the way CEL does, ordered by position, with line, column, the line itself and a
// caret under the spot. At most kMaxReportedIssues are shown, then how many were left out.
inline constexpr std::size_t kMaxReportedIssues = 100;
std::string FormatIssues(std::string_view source, std::vector<Issue> issues);

}  // namespace drakkar::cel
