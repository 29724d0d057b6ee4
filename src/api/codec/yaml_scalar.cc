#include "api/codec/yaml_scalar.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>

#include "api/tree/freeze.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

template <std::size_t N>
bool IsOneOf(std::string_view text, const std::string_view (&words)[N]) {
  return std::find(std::begin(words), std::end(words), text) != std::end(words);
}

constexpr std::string_view kTrue[] = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                      "True", "TRUE", "on",  "On",  "ON"};
constexpr std::string_view kFalse[] = {"n",     "N",     "no",  "No",  "NO", "false",
                                       "False", "FALSE", "off", "Off", "OFF"};
constexpr std::string_view kNull[] = {"", "~", "null", "Null", "NULL"};
constexpr std::string_view kNan[] = {".nan", ".NaN", ".NAN"};
constexpr std::string_view kInfinity[] = {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"};
constexpr std::string_view kMinusInfinity[] = {"-.inf", "-.Inf", "-.INF"};

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool IsFloatSyntax(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t start = at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    return at - start;
  };
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  const std::size_t whole = digits();
  std::size_t fraction = 0;
  if (at < text.size() && text[at] == '.') {
    ++at;
    fraction = digits();
  }
  if (whole == 0 && fraction == 0) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

// As Go's strconv.ParseInt with base 0: 0x, 0o, 0b and a leading 0 choose the base.
std::optional<std::int64_t> ParseInteger(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
    text.remove_prefix(mark == 'x' || mark == 'b' || mark == 'o' ? 2 : 1);
  }
  std::uint64_t magnitude = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, magnitude, base);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  const std::uint64_t limit = std::uint64_t{1} << 63;
  if (magnitude > limit || (magnitude == limit && !negative)) return std::nullopt;
  return static_cast<std::int64_t>(negative ? ~magnitude + 1 : magnitude);
}

}  // namespace

Node ResolveYamlScalar(std::string_view text) {
  if (IsOneOf(text, kNull)) return NullNode();
  const char first = text[0];
  const bool numeric = IsDigit(first) || first == '-' || first == '+' || first == '.';
  if (!numeric) {
    if (IsOneOf(text, kTrue)) return BoolNode(true);
    if (IsOneOf(text, kFalse)) return BoolNode(false);
    return TextNode(text);
  }
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (IsOneOf(text, kNan)) return DoubleNode(std::numeric_limits<double>::quiet_NaN());
  if (IsOneOf(text, kInfinity)) return DoubleNode(kInf);
  if (IsOneOf(text, kMinusInfinity)) return DoubleNode(-kInf);
  std::string plain(text);
  std::erase(plain, '_');
  if (const auto integer = ParseInteger(plain)) return IntNode(*integer);
  if (!IsFloatSyntax(plain)) return TextNode(text);
  const double number = std::strtod(plain.c_str(), nullptr);
  if (!std::isfinite(number)) return TextNode(text);
  // Such a number has no fraction when written as JSON, and is read back as an integer.
  if (std::trunc(number) == number && std::fabs(number) < 0x1p63) {
    return IntNode(static_cast<std::int64_t>(number));
  }
  return DoubleNode(number);
}

}  // namespace drakkar::api
