#include "cel/library/string_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <vector>

#include "base/text/text.h"
#include "cel/library/time.h"

namespace drakkar::cel::library {
namespace {

constexpr int kDefaultPrecision = 6;
constexpr int kMaxPrecision = 1'000;

struct Clause {
  char verb = 0;
  int precision = -1;
};

// Reads the clause after a '%'.
Result<Clause> ReadClause(std::string_view& rest) {
  Clause clause;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    int precision = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), precision);
    if (error != std::errc() || precision < 0)
      return InvalidArgument("error while parsing precision");
    if (precision > kMaxPrecision)
      return InvalidArgument(StrCat("error while parsing precision: precision ", precision,
                                    " exceeds ", kMaxPrecision));
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    clause.precision = precision;
  }
  if (rest.empty())
    return InvalidArgument("could not parse formatting clause: unexpected end of string");
  clause.verb = rest[0];
  if (std::string_view("sdfebxXo").find(clause.verb) == std::string_view::npos) {
    return InvalidArgument(StrCat(
        "could not parse formatting clause: unrecognized formatting clause \"", clause.verb, "\""));
  }
  rest.remove_prefix(1);
  return clause;
}

std::string VerbError(char verb, std::string_view type) {
  switch (verb) {
    case 'd':
      return StrCat("decimal clause can only be used on integers, was given ", type);
    case 'f':
      return StrCat("fixed-point clause can only be used on doubles, was given ", type);
    case 'e':
      return StrCat("scientific clause can only be used on doubles, was given ", type);
    case 'b':
      return StrCat("only integers and bools can be formatted as binary, was given ", type);
    case 'o':
      return StrCat("octal clause can only be used on integers, was given ", type);
    case 'x':
    case 'X':
      return StrCat("only integers, byte buffers, and strings can be formatted as hex, was given ",
                    type);
    default:
      return StrCat(
          "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, "
          "types, "
          "durations, and timestamps, was given ",
          type);
  }
}

bool VerbAccepts(char verb, std::string_view type) {
  const auto any = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), type) != names.end();
  };
  switch (verb) {
    case 'd':
    case 'o':
      return any({"int", "uint"});
    case 'f':
    case 'e':
      return any({"double", "int", "uint"});
    case 'b':
      return any({"int", "uint", "bool"});
    case 'x':
    case 'X':
      return any({"int", "uint", "string", "bytes"});
    default:
      return any({"string", "bool", "bytes", "int", "uint", "double", "map", "list", "type",
                  "null_type", "google.protobuf.Duration", "google.protobuf.Timestamp"});
  }
}

std::string SpecialDouble(double number) {
  return std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
}

Result<std::string> StringClause(const Value& value, FormatDialect dialect);

std::string QuotedText(std::string_view text) {
  return Quote(text);
}

// An element of a list or map.
Result<std::string> Nested(const Value& value, FormatDialect dialect) {
  if (dialect == FormatDialect::kPlain) return StringClause(value, dialect);
  switch (value.kind) {
    case Kind::kString:
      return QuotedText(value.text());
    case Kind::kBytes:
      return "b" + QuotedText(value.text());
    case Kind::kDouble: {
      if (!std::isfinite(value.number)) return QuotedText(SpecialDouble(value.number));
      char buffer[400];
      std::snprintf(buffer, sizeof(buffer), "%.*f", kDefaultPrecision, value.number);
      return std::string(buffer);
    }
    case Kind::kDuration:
      return StrCat("duration(\"", DurationText(value.integer), "\")");
    case Kind::kTimestamp:
      return StrCat("timestamp(\"", TimestampText({value.integer, value.size}), "\")");
    case Kind::kType:
      return StrCat("type(", value.text(), ")");
    default:
      return StringClause(value, dialect);
  }
}

Result<std::string> StringClause(const Value& value, FormatDialect dialect) {
  switch (value.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return value.boolean ? "true" : "false";
    case Kind::kInt:
      return std::to_string(value.integer);
    case Kind::kUint:
      return std::to_string(value.unsigned_integer);
    case Kind::kDouble:
      return std::isfinite(value.number) ? DoubleText(value.number) : SpecialDouble(value.number);
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kType:
      return std::string(value.text());
    case Kind::kDuration:
      return DurationText(value.integer);
    case Kind::kTimestamp:
      return TimestampText({value.integer, value.size});
    case Kind::kList: {
      std::vector<std::string> parts;
      for (std::uint32_t i = 0; i < value.size; ++i) {
        Result<std::string> part = Nested(cel::ListItems(value)[i], dialect);
        if (!part.ok()) return part;
        parts.push_back(*std::move(part));
      }
      return StrCat("[", Join(parts, ", "), "]");
    }
    case Kind::kMap: {
      std::vector<std::string> parts;
      for (std::uint32_t i = 0; i < value.size; ++i) {
        Result<std::string> key = Nested(value.map->KeyAt(i), dialect);
        Result<std::string> item = Nested(value.map->ValueAt(i), dialect);
        if (!key.ok()) return key;
        if (!item.ok()) return item;
        parts.push_back(StrCat(*key, dialect == FormatDialect::kPlain ? ": " : ":", *item));
      }
      std::sort(parts.begin(), parts.end());
      return StrCat("{", Join(parts, ", "), "}");
    }
    default:
      return InvalidArgument(VerbError('s', TypeName(value)));
  }
}

// 1.5e+03 as 1.5 × 10⁰³.
std::string Superscript(std::string_view scientific) {
  const std::size_t e = scientific.find('e');
  std::string text = StrCat(scientific.substr(0, e), "\u00a0\u00d7\u00a010");
  static constexpr std::string_view kDigits[] = {"\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074",
                                                 "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
  for (const char c : scientific.substr(e + 1)) {
    if (c == '-') text += "\u207b";
    if (c >= '0' && c <= '9') text += kDigits[c - '0'];
  }
  return text;
}

std::string Grouped(std::string text) {
  std::size_t end = text.find('.');
  if (end == std::string::npos) end = text.size();
  const std::size_t begin = text.starts_with('-') ? 1 : 0;
  while (end > begin + 3) {
    end -= 3;
    text.insert(end, ",");
  }
  return text;
}

Result<std::string> DoubleClause(const Value& value, Clause clause, FormatDialect dialect) {
  double number = 0;
  if (value.kind == Kind::kDouble) {
    number = value.number;
  } else if (value.kind == Kind::kInt && dialect == FormatDialect::kPlain) {
    number = static_cast<double>(value.integer);
  } else if (value.kind == Kind::kUint && dialect == FormatDialect::kPlain) {
    number = static_cast<double>(value.unsigned_integer);
  } else {
    return InvalidArgument(VerbError(clause.verb, TypeName(value)));
  }
  if (!std::isfinite(number)) return SpecialDouble(number);
  const int precision = clause.precision < 0 ? kDefaultPrecision : clause.precision;
  std::string buffer(static_cast<std::size_t>(precision) + 340, '\0');
  const int size = std::snprintf(buffer.data(), buffer.size(), clause.verb == 'f' ? "%.*f" : "%.*e",
                                 precision, number);
  buffer.resize(static_cast<std::size_t>(size));
  if (dialect == FormatDialect::kPlain) return buffer;
  return clause.verb == 'f' ? Grouped(std::move(buffer)) : Superscript(buffer);
}

std::string InBase(const Value& value, int base, bool upper) {
  char buffer[72];
  const auto result =
      value.kind == Kind::kInt
          ? std::to_chars(buffer, buffer + sizeof(buffer), value.integer, base)
          : std::to_chars(buffer, buffer + sizeof(buffer), value.unsigned_integer, base);
  std::string text(buffer, result.ptr);
  if (upper)
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'a' && c <= 'f' ? static_cast<char>(c - 32) : c; });
  return text;
}

Result<std::string> ApplyClause(const Value& value, Clause clause, FormatDialect dialect) {
  if (clause.verb == 's') return StringClause(value, dialect);
  if (clause.verb == 'f' || clause.verb == 'e') return DoubleClause(value, clause, dialect);
  if (!VerbAccepts(clause.verb, TypeName(value)))
    return InvalidArgument(VerbError(clause.verb, TypeName(value)));
  switch (clause.verb) {
    case 'd':
      return InBase(value, 10, false);
    case 'o':
      return InBase(value, 8, false);
    case 'b':
      if (value.kind == Kind::kBool) return value.boolean ? "1" : "0";
      return InBase(value, 2, false);
    default:
      break;
  }
  const bool upper = clause.verb == 'X';
  if (value.kind == Kind::kInt || value.kind == Kind::kUint) return InBase(value, 16, upper);
  std::string text;
  for (const char c : value.text()) {
    char buffer[3];
    std::snprintf(buffer, sizeof(buffer), upper ? "%02X" : "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    text += buffer;
  }
  return text;
}

}  // namespace

Result<std::string> FormatText(std::string_view format, const Value& args, FormatDialect dialect) {
  std::string out;
  std::size_t used = 0;
  while (!format.empty()) {
    const std::size_t percent = format.find('%');
    out += format.substr(0, percent);
    if (percent == std::string_view::npos) break;
    format.remove_prefix(percent + 1);
    if (format.starts_with('%')) {
      out += '%';
      format.remove_prefix(1);
      continue;
    }
    if (format.empty()) return InvalidArgument("unexpected end of string");
    // A missing argument takes precedence over a bad clause.
    if (used >= args.size) return InvalidArgument(StrCat("index ", used, " out of range"));
    Result<Clause> clause = ReadClause(format);
    if (!clause.ok()) return clause.error();
    Result<std::string> text = ApplyClause(cel::ListItems(args)[used++], *clause, dialect);
    if (!text.ok()) return text.error().Prefixed("error during formatting");
    out += *text;
  }
  return out;
}

std::optional<FormatIssue> CheckFormat(std::string_view format, std::size_t argument_count,
                                       const std::function<std::string(std::size_t)>& kind_of) {
  std::size_t used = 0;
  while (!format.empty()) {
    const std::size_t percent = format.find('%');
    if (percent == std::string_view::npos) break;
    format.remove_prefix(percent + 1);
    if (format.starts_with('%')) {
      format.remove_prefix(1);
      continue;
    }
    if (format.empty()) return FormatIssue{-1, "unexpected end of string"};
    if (used >= argument_count) return FormatIssue{-1, StrCat("index ", used, " out of range")};
    const Result<Clause> clause = ReadClause(format);
    if (!clause.ok()) return FormatIssue{-1, clause.error().message};
    const std::string kind = kind_of(used);
    const bool number_as_double = (clause->verb == 'f' || clause->verb == 'e') && kind != "double";
    if (!kind.empty() && (!VerbAccepts(clause->verb, kind) || number_as_double)) {
      return FormatIssue{static_cast<int>(used),
                         StrCat("error during formatting: ", VerbError(clause->verb, kind))};
    }
    ++used;
  }
  if (argument_count > used) {
    return FormatIssue{-1, StrCat("too many arguments supplied to string.format (expected ", used,
                                  ", got ", argument_count, ")")};
  }
  return std::nullopt;
}

}  // namespace drakkar::cel::library
