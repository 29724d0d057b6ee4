#include "cel/ast/source.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::cel {
namespace {

// The bytes of the character at the front of `text`.
std::size_t CharacterSize(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return std::min(size, text.size());
}

std::string FormatIssue(std::string_view source, const Issue& issue) {
  const std::size_t offset =
      std::min(static_cast<std::size_t>(std::max(issue.offset, 0)), source.size());
  std::size_t line_begin = 0;
  std::size_t line_number = 1;
  for (std::size_t i = 0; i < offset; ++i) {
    if (source[i] == '\n') {
      line_begin = i + 1;
      ++line_number;
    }
  }
  std::string_view line = source.substr(line_begin);
  line = line.substr(0, line.find('\n'));
  std::string dots;
  std::size_t column = 0;
  std::string_view rest = line;
  while (!rest.empty() && line.size() - rest.size() < offset - line_begin) {
    const std::size_t size = CharacterSize(rest);
    dots += size > 1 ? "\uff0e" : ".";
    rest.remove_prefix(size);
    ++column;
  }
  // An empty expression has neither a first column nor a line to show.
  if (source.empty()) return StrCat("ERROR: <input>:1:0: ", issue.message);
  std::string text = StrCat("ERROR: <input>:", line_number, ":", column + 1, ": ", issue.message);
  std::string shown(line);
  std::replace(shown.begin(), shown.end(), '\t', ' ');
  const bool wide = !rest.empty() && CharacterSize(rest) > 1;
  return StrCat(text, "\n | ", shown, "\n | ", dots, wide ? "\uff3e" : "^");
}

}  // namespace

std::string FormatIssues(std::string_view source, std::vector<Issue> issues) {
  const std::size_t total = issues.size();
  if (issues.size() > kMaxReportedIssues) issues.resize(kMaxReportedIssues);
  std::stable_sort(issues.begin(), issues.end(),
                   [](const Issue& a, const Issue& b) { return a.offset < b.offset; });
  std::string text;
  for (const Issue& issue : issues) {
    if (!text.empty()) text += '\n';
    text += FormatIssue(source, issue);
  }
  if (total > kMaxReportedIssues) {
    text += StrCat("\n", total - kMaxReportedIssues, " more errors were truncated");
  }
  return text;
}

}  // namespace drakkar::cel
