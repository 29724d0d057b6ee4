#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace drakkar::cel {

// A problem in an expression and its position: `offset` counts bytes from the start.
struct Issue {
  std::int32_t offset = 0;
  std::string message;
};

// Formats issues as CEL does, ordered by position, with line, column, the source line and a caret.
// At most kMaxReportedIssues are shown, followed by the number omitted.
inline constexpr std::size_t kMaxReportedIssues = 100;
std::string FormatIssues(std::string_view source, std::vector<Issue> issues);

}  // namespace drakkar::cel
