#include "api/meta/compared_taint.h"

#include <algorithm>
#include <optional>

#include "base/text/text.h"

namespace drakkar::api {
namespace {

bool IsCanonical(std::string_view text) {
  if (text == "0") return true;
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.front() != '0' && std::ranges::all_of(text, IsDigit);
}

std::optional<std::int64_t> Read(std::string_view text) {
  return IsCanonical(text) ? ParseInt64(text) : std::nullopt;
}

// In the words of Go's strconv.ParseInt, which also takes a plus sign and leading zeros.
std::string_view WhyNoInteger(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.empty() || !std::ranges::all_of(digits, IsDigit)) return "invalid syntax";
  if (text.starts_with('+')) text.remove_prefix(1);
  return ParseInt64(text) ? "" : "value out of range";
}

}  // namespace

bool IsComparison(std::string_view toleration_operator) {
  return toleration_operator == "Gt" || toleration_operator == "Lt";
}

Problems CheckComparedValue(std::string_view value) {
  Problems problems;
  if (value.empty()) {
    problems.emplace_back("must be non-empty");
  } else if (!IsCanonical(value)) {
    problems.emplace_back("must be a valid decimal integer in canonical form");
  }
  if (const std::string_view why = WhyNoInteger(value); !why.empty()) {
    problems.push_back(StrCat("strconv.ParseInt: parsing ", Quote(value), ": ", why));
  }
  return problems;
}

bool ComparesTaint(std::string_view toleration_operator, std::string_view toleration_value,
                   std::string_view taint_value) {
  if (!IsComparison(toleration_operator)) return false;
  const std::optional<std::int64_t> toleration = Read(toleration_value);
  const std::optional<std::int64_t> taint = Read(taint_value);
  if (!toleration || !taint) return false;
  return toleration_operator == "Gt" ? *taint > *toleration : *taint < *toleration;
}

}  // namespace drakkar::api
