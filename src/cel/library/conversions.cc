#include <charconv>
#include <cmath>

#include "base/text/text.h"
#include "cel/library/standard_families.h"
#include "cel/library/time.h"

namespace drakkar::cel::library {
namespace {

using namespace types;  // NOLINT

Value ConversionError(CallContext& c, const Value& from, std::string_view to) {
  return NewError(c.arena,
                  StrCat("type conversion error from '", TypeName(from), "' to '", to, "'"));
}

Value ToInt(CallContext& c, Args args) {
  const Value& a = args[0];
  switch (a.kind) {
    case Kind::kInt:
      return a;
    case Kind::kUint:
      if (a.unsigned_integer > static_cast<std::uint64_t>(INT64_MAX))
        return NewError(c.arena, "integer overflow");
      return MakeInt(static_cast<std::int64_t>(a.unsigned_integer));
    case Kind::kDouble:
      if (std::isnan(a.number) || a.number <= -9223372036854775808.0 ||
          a.number >= 9223372036854775807.0) {
        return NewError(c.arena, "integer overflow");
      }
      return MakeInt(static_cast<std::int64_t>(a.number));
    case Kind::kString: {
      std::string_view text = a.text();
      if (text.starts_with('+')) text.remove_prefix(1);
      const std::optional<std::int64_t> value =
          text.starts_with('+') || (text.size() < a.text().size() && text.starts_with('-'))
              ? std::nullopt
              : ParseInt64(text);
      return value ? MakeInt(*value) : ConversionError(c, a, "int");
    }
    case Kind::kTimestamp:
      return MakeInt(a.integer);
    case Kind::kDuration:
      return MakeInt(a.integer);
    default:
      return ConversionError(c, a, "int");
  }
}

Value ToUint(CallContext& c, Args args) {
  const Value& a = args[0];
  switch (a.kind) {
    case Kind::kUint:
      return a;
    case Kind::kInt:
      if (a.integer < 0) return NewError(c.arena, "unsigned integer overflow");
      return MakeUint(static_cast<std::uint64_t>(a.integer));
    case Kind::kDouble:
      if (std::isnan(a.number) || a.number < 0 || a.number >= 18446744073709551615.0) {
        return NewError(c.arena, "unsigned integer overflow");
      }
      return MakeUint(static_cast<std::uint64_t>(a.number));
    case Kind::kString: {
      std::uint64_t value = 0;
      const std::string_view text = a.text();
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (text.empty() || error != std::errc() || end != text.data() + text.size())
        return ConversionError(c, a, "uint");
      return MakeUint(value);
    }
    default:
      return ConversionError(c, a, "uint");
  }
}

Value ToDouble(CallContext& c, Args args) {
  const Value& a = args[0];
  switch (a.kind) {
    case Kind::kDouble:
      return a;
    case Kind::kInt:
      return MakeDouble(static_cast<double>(a.integer));
    case Kind::kUint:
      return MakeDouble(static_cast<double>(a.unsigned_integer));
    case Kind::kString: {
      std::string_view text = a.text();
      if (text.starts_with('+')) text.remove_prefix(1);
      double value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (text.empty() || error != std::errc() || end != text.data() + text.size())
        return ConversionError(c, a, "double");
      return MakeDouble(value);
    }
    default:
      return ConversionError(c, a, "double");
  }
}

Value ToText(CallContext& c, Args args) {
  const Value& a = args[0];
  switch (a.kind) {
    case Kind::kString:
      return a;
    case Kind::kBool:
      return MakeString(a.boolean ? "true" : "false");
    case Kind::kInt:
      return NewString(c.arena, std::to_string(a.integer));
    case Kind::kUint:
      return NewString(c.arena, std::to_string(a.unsigned_integer));
    case Kind::kDouble:
      return NewString(c.arena, DoubleText(a.number));
    case Kind::kBytes:
      if (!IsValidUtf8(a.text()))
        return NewError(c.arena, "invalid UTF-8 in bytes, cannot convert to string");
      return MakeString(a.text());
    case Kind::kDuration:
      return NewString(c.arena, DurationText(a.integer));
    case Kind::kTimestamp:
      return NewString(c.arena, TimestampText({a.integer, a.size}));
    default:
      return ConversionError(c, a, "string");
  }
}

Value ToBytes(CallContext& c, Args args) {
  if (args[0].kind == Kind::kBytes) return args[0];
  return args[0].kind == Kind::kString ? MakeBytes(args[0].text())
                                       : ConversionError(c, args[0], "bytes");
}

Value ToBool(CallContext& c, Args args) {
  const Value& a = args[0];
  if (a.kind == Kind::kBool) return a;
  if (a.kind == Kind::kString) {
    for (const std::string_view word : {"1", "t", "T", "true", "TRUE", "True"}) {
      if (a.text() == word) return MakeBool(true);
    }
    for (const std::string_view word : {"0", "f", "F", "false", "FALSE", "False"}) {
      if (a.text() == word) return MakeBool(false);
    }
  }
  return ConversionError(c, a, "bool");
}

Value ToDuration(CallContext& c, Args args) {
  const Value& a = args[0];
  if (a.kind == Kind::kDuration) return a;
  if (a.kind == Kind::kInt) return MakeDuration(a.integer);
  if (a.kind == Kind::kString) {
    if (const std::optional<std::int64_t> value = ParseDuration(a.text()))
      return MakeDuration(*value);
  }
  return ConversionError(c, a, "google.protobuf.Duration");
}

Value ToTimestamp(CallContext& c, Args args) {
  const Value& a = args[0];
  if (a.kind == Kind::kTimestamp) return a;
  if (a.kind == Kind::kInt) {
    if (a.integer < kMinTimestampSeconds || a.integer > kMaxTimestampSeconds)
      return NewError(c.arena, "timestamp overflow");
    return MakeTimestamp(a.integer, 0);
  }
  if (a.kind == Kind::kString) {
    if (const std::optional<Instant> value = ParseTimestamp(a.text())) {
      return MakeTimestamp(value->seconds, value->nanoseconds);
    }
  }
  return ConversionError(c, a, "google.protobuf.Timestamp");
}

Value ToDyn(CallContext&, Args args) {
  return args[0];
}
Value TypeOfValue(CallContext&, Args args) {
  return MakeType(TypeName(args[0]));
}

}  // namespace

void AddConversions(Declarations& d) {
  const TypeRef a = Param("A");
  struct Conversion {
    const char* name;
    TypeRef result;
    Implementation implementation;
    std::vector<std::pair<const char*, TypeRef>> from;
  };
  const Conversion conversions[] = {
      {"bool", Bool(), ToBool, {{"bool_to_bool", Bool()}, {"string_to_bool", String()}}},
      {"bytes", Bytes(), ToBytes, {{"bytes_to_bytes", Bytes()}, {"string_to_bytes", String()}}},
      {"double",
       Double(),
       ToDouble,
       {{"double_to_double", Double()},
        {"int64_to_double", Int()},
        {"string_to_double", String()},
        {"uint64_to_double", Uint()}}},
      {"duration",
       Duration(),
       ToDuration,
       {{"duration_to_duration", Duration()},
        {"int64_to_duration", Int()},
        {"string_to_duration", String()}}},
      {"dyn", Dyn(), ToDyn, {{"to_dyn", a}}},
      {"int",
       Int(),
       ToInt,
       {{"int64_to_int64", Int()},
        {"double_to_int64", Double()},
        {"duration_to_int64", Duration()},
        {"string_to_int64", String()},
        {"timestamp_to_int64", Timestamp()},
        {"uint64_to_int64", Uint()}}},
      {"string",
       String(),
       ToText,
       {{"string_to_string", String()},
        {"bool_to_string", Bool()},
        {"bytes_to_string", Bytes()},
        {"double_to_string", Double()},
        {"duration_to_string", Duration()},
        {"int64_to_string", Int()},
        {"timestamp_to_string", Timestamp()},
        {"uint64_to_string", Uint()}}},
      {"timestamp",
       Timestamp(),
       ToTimestamp,
       {{"timestamp_to_timestamp", Timestamp()},
        {"int64_to_timestamp", Int()},
        {"string_to_timestamp", String()}}},
      {"uint",
       Uint(),
       ToUint,
       {{"uint64_to_uint64", Uint()},
        {"double_to_uint64", Double()},
        {"int64_to_uint64", Int()},
        {"string_to_uint64", String()}}},
  };
  for (const Conversion& conversion : conversions) {
    for (const auto& [id, from] : conversion.from)
      Global(d, conversion.name, id, {from}, conversion.result);
    d.SetImplementation(conversion.name, conversion.implementation);
  }
  Global(d, "type", "type", {a}, TypeOf(a));
  d.SetImplementation("type", TypeOfValue);
}

}  // namespace drakkar::cel::library
