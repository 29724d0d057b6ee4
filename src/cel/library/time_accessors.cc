#include "base/text/text.h"
#include "cel/library/standard_families.h"
#include "cel/library/time.h"

namespace drakkar::cel::library {
namespace {

using namespace types;  // NOLINT

using Field = std::int64_t (*)(const CivilTime& civil, std::uint32_t nanoseconds);
// The number of nanoseconds in a duration's unit.
template <Field field, std::int64_t unit>
Value Get(CallContext& c, Args args) {
  const Value& a = args[0];
  if (a.kind == Kind::kDuration && args.size() == 1 && unit != 0) {
    // As cel-go does, getMilliseconds() gives the whole duration; the specification's tests expect
    // the part beyond full seconds.
    return MakeInt(a.integer / unit);
  }
  if (a.kind != Kind::kTimestamp) return NoSuchOverload(c);
  int offset = 0;
  if (args.size() == 2) {
    if (args[1].kind != Kind::kString) return NoSuchOverload(c);
    const std::optional<int> zone = ZoneOffset(args[1].text(), a.integer);
    if (!zone) return NewError(c.arena, StrCat("unknown time zone ", args[1].text()));
    offset = *zone;
  }
  return MakeInt(field(ToCivil(a.integer + offset), a.size));
}

constexpr Field kYear = [](const CivilTime& t, std::uint32_t) -> std::int64_t { return t.year; };
constexpr Field kMonth = [](const CivilTime& t, std::uint32_t) -> std::int64_t {
  return t.month - 1;
};
constexpr Field kDayOfYear = [](const CivilTime& t, std::uint32_t) -> std::int64_t {
  return t.day_of_year;
};
constexpr Field kDayOfMonth = [](const CivilTime& t, std::uint32_t) -> std::int64_t {
  return t.day - 1;
};
constexpr Field kDate = [](const CivilTime& t, std::uint32_t) -> std::int64_t { return t.day; };
constexpr Field kDayOfWeek = [](const CivilTime& t, std::uint32_t) -> std::int64_t {
  return t.day_of_week;
};
constexpr Field kHours = [](const CivilTime& t, std::uint32_t) -> std::int64_t { return t.hour; };
constexpr Field kMinutes = [](const CivilTime& t, std::uint32_t) -> std::int64_t {
  return t.minute;
};
constexpr Field kSeconds = [](const CivilTime& t, std::uint32_t) -> std::int64_t {
  return t.second;
};
constexpr Field kMilliseconds = [](const CivilTime&, std::uint32_t n) -> std::int64_t {
  return n / 1'000'000;
};

}  // namespace

void AddTimeAccessors(Declarations& d) {
  struct Accessor {
    const char* name;
    const char* id;
    const char* duration_id;
    Implementation implementation;
  };
  for (const Accessor& accessor : {
           Accessor{"getFullYear", "timestamp_to_year", nullptr, Get<kYear, 0>},
           Accessor{"getMonth", "timestamp_to_month", nullptr, Get<kMonth, 0>},
           Accessor{"getDayOfYear", "timestamp_to_day_of_year", nullptr, Get<kDayOfYear, 0>},
           Accessor{"getDayOfMonth", "timestamp_to_day_of_month", nullptr, Get<kDayOfMonth, 0>},
           Accessor{"getDate", "timestamp_to_day_of_month_1_based", nullptr, Get<kDate, 0>},
           Accessor{"getDayOfWeek", "timestamp_to_day_of_week", nullptr, Get<kDayOfWeek, 0>},
           Accessor{"getHours", "timestamp_to_hours", "duration_to_hours",
                    Get<kHours, 3'600'000'000'000>},
           Accessor{"getMinutes", "timestamp_to_minutes", "duration_to_minutes",
                    Get<kMinutes, 60'000'000'000>},
           Accessor{"getSeconds", "timestamp_to_seconds", "duration_to_seconds",
                    Get<kSeconds, 1'000'000'000>},
           Accessor{"getMilliseconds", "timestamp_to_milliseconds", "duration_to_milliseconds",
                    Get<kMilliseconds, 1'000'000>},
       }) {
    Member(d, accessor.name, accessor.id, {Timestamp()}, Int());
    Member(d, accessor.name, StrCat(accessor.id, "_with_tz"), {Timestamp(), String()}, Int());
    if (accessor.duration_id) Member(d, accessor.name, accessor.duration_id, {Duration()}, Int());
    d.SetImplementation(accessor.name, accessor.implementation);
  }
}

}  // namespace drakkar::cel::library
