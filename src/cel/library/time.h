#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Durations and timestamps as text, and calendars. Years 1 to 9999, proleptic Gregorian.
namespace drakkar::cel {

inline constexpr std::int64_t kMinTimestampSeconds = -62'135'596'800;
inline constexpr std::int64_t kMaxTimestampSeconds = 253'402'300'799;

struct CivilTime {
  std::int64_t year = 0;
  int month = 0;  // from 1
  int day = 0;    // from 1
  int hour = 0;
  int minute = 0;
  int second = 0;
  int day_of_week = 0;  // Sunday is 0
  int day_of_year = 0;  // from 0
};

CivilTime ToCivil(std::int64_t seconds);
std::int64_t DaysFromCivil(std::int64_t year, int month, int day);

// "1h2m3.5s", "-1.5h", "100ms": a sum of units; nothing if it is malformed or does not fit an int64
// of nanoseconds.
std::optional<std::int64_t> ParseDuration(std::string_view text);
std::string DurationText(std::int64_t nanoseconds);  // "3600s"

struct Instant {
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;
};
std::optional<Instant> ParseTimestamp(std::string_view text);  // RFC 3339
std::string TimestampText(Instant instant);

// Seconds east of UTC: "UTC", "+02:00", or the name of a zone at that moment. Nothing if unknown.
std::optional<int> ZoneOffset(std::string_view zone, std::int64_t seconds);

// The shortest text that reads back as the same number, as Go's %g prints it.
std::string DoubleText(double number);

}  // namespace drakkar::cel
