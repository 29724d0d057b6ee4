#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result/result.h"
#include "cel/value/value.h"

namespace drakkar::cel::library {

// How "%s".format([x]) prints: the library's first releases quoted text inside lists and maps and
// wrote powers of ten in superscript, which Kubernetes still does.
enum class FormatDialect { kQuoted, kPlain };

Result<std::string> FormatText(std::string_view format, const Value& args, FormatDialect dialect);

// The problem with a format string for arguments of known kinds, and the argument's index (-1: the
// format itself).
struct FormatIssue {
  int argument = -1;
  std::string message;
};
// `kind_of` gives the type name of argument i, or "" if it is not known.
std::optional<FormatIssue> CheckFormat(std::string_view format, std::size_t argument_count,
                                       const std::function<std::string(std::size_t)>& kind_of);

}  // namespace drakkar::cel::library
