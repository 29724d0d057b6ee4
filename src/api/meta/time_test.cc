#include "api/meta/time.h"

#include <gtest/gtest.h>

namespace drakkar::api {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

std::string Normal(std::string_view text) {
  const auto time = NormalizeTime(text);
  return time.ok() ? *time : time.error().message;
}

TEST(Time, IsWrittenInUtcWithWholeSeconds) {
  EXPECT_EQ(Normal("2025-06-07T08:09:10Z"), "2025-06-07T08:09:10Z");
  EXPECT_EQ(Normal("2025-06-07T08:09:10.999Z"), "2025-06-07T08:09:10Z");
  EXPECT_EQ(Normal("2025-06-07T08:09:10+02:00"), "2025-06-07T06:09:10Z");
  EXPECT_EQ(Normal("2024-12-31T23:30:00-01:00"), "2025-01-01T00:30:00Z");
  EXPECT_EQ(Normal("9999-12-31T23:59:59Z"), "9999-12-31T23:59:59Z");
  EXPECT_EQ(Normal("0001-01-01T00:00:00Z"), "");
  EXPECT_EQ(Normal("1969-12-31T23:59:59Z"), "1969-12-31T23:59:59Z");
  // An offset moves the time out of the four-digit years.
  EXPECT_EQ(Normal("9999-12-31T23:59:59-24:00"), "10000-01-01T23:59:59Z");
  EXPECT_EQ(Normal("0000-01-01T00:00:00+24:00"), "-0001-12-31T00:00:00Z");
}

TEST(Time, RefusesInTheWordsOfGo) {
  EXPECT_EQ(Normal("x"),
            R"(parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006")");
  EXPECT_EQ(Normal(""),
            R"(parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006")");
  EXPECT_EQ(Normal("2025-13-01T00:00:00Z"),
            R"(parsing time "2025-13-01T00:00:00Z": month out of range)");
  EXPECT_EQ(Normal("2025-02-30T00:00:00Z"),
            R"(parsing time "2025-02-30T00:00:00Z": day out of range)");
  EXPECT_EQ(
      Normal("2025-01-01T00:00:00"),
      R"(parsing time "2025-01-01T00:00:00" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00")");
  EXPECT_EQ(Normal("2025-01-01T00:00:00Zx"),
            R"(parsing time "2025-01-01T00:00:00Zx": extra text: "x")");
  EXPECT_FALSE(ParseTime("9999-12-31T23:59:59Z").ok());
}

TEST(Time, TheQuickWayAgreesWithTheThoroughOne) {
  for (const char* text :
       {"2025-06-07T08:09:10Z", "2025-06-28T23:59:59Z", "1000-01-01T00:00:00Z"}) {
    EXPECT_TRUE(IsNormalTime(text));
    EXPECT_EQ(Normal(text), text);
  }
  for (const char* text :
       {"2025-13-07T08:09:10Z", "2025-02-30T08:09:10Z", "2025-06-07T24:09:10Z",
        "2025-06-07T08:60:10Z", "2025-06-07T08:09:60Z", "2025-06-07 08:09:10Z",
        "0001-01-01T00:00:00Z", "2025-00-07T08:09:10Z", "2025-06-00T08:09:10Z"}) {
    EXPECT_FALSE(IsNormalTime(text)) << text;
  }
}

TEST(Time, MicroTimeHasExactlySixDigits) {
  EXPECT_EQ(*NormalizeMicroTime("2025-06-07T08:09:10.123456+01:00"), "2025-06-07T07:09:10.123456Z");
  EXPECT_FALSE(ParseMicroTime("2025-06-07T08:09:10Z").ok());
  EXPECT_FALSE(ParseMicroTime("2025-06-07T08:09:10.123Z").ok());
  EXPECT_FALSE(ParseMicroTime("2025-06-07T08:09:10.1234567Z").ok());
}

TEST(Time, ParsesWhatItFormats) {
  for (std::int64_t count :
       {0LL, 1'749'283'750'123'456'000LL, -1'000LL, 951'782'400'000'000'000LL}) {
    const WallTime time{nanoseconds(count)};
    EXPECT_EQ(*ParseMicroTime(FormatMicroTime(time)), time);
    EXPECT_EQ(*ParseTime(FormatTime(time)), std::chrono::floor<seconds>(time));
  }
}

TEST(Duration, IsWrittenAsGoWritesIt) {
  EXPECT_EQ(FormatDuration(Duration(0)), "0s");
  EXPECT_EQ(FormatDuration(minutes(10)), "10m0s");
  EXPECT_EQ(FormatDuration(hours(1) + minutes(2) + seconds(3)), "1h2m3s");
  EXPECT_EQ(FormatDuration(milliseconds(1500)), "1.5s");
  EXPECT_EQ(FormatDuration(milliseconds(-100)), "-100ms");
  EXPECT_EQ(FormatDuration(nanoseconds(1500)), "1.5µs");
  EXPECT_EQ(FormatDuration(nanoseconds(7)), "7ns");
  EXPECT_EQ(FormatDuration(Duration::min()), "-2562047h47m16.854775808s");
  EXPECT_EQ(FormatDuration(Duration::max()), "2562047h47m16.854775807s");
}

TEST(Duration, IsReadAsGoReadsIt) {
  EXPECT_EQ(*ParseDuration("1h2m3s"), hours(1) + minutes(2) + seconds(3));
  EXPECT_EQ(*ParseDuration("-1.5h"), -minutes(90));
  EXPECT_EQ(*ParseDuration("0"), Duration(0));
  EXPECT_EQ(*ParseDuration(".5s"), milliseconds(500));
  EXPECT_EQ(*ParseDuration("0.1ms"), nanoseconds(100'000));
  EXPECT_EQ(*ParseDuration("-2562047h47m16.854775808s"), Duration::min());
  EXPECT_EQ(ParseDuration("").error().message, "time: invalid duration \"\"");
  EXPECT_EQ(ParseDuration("3").error().message, "time: missing unit in duration \"3\"");
  EXPECT_EQ(ParseDuration("3x").error().message, "time: unknown unit \"x\" in duration \"3x\"");
  EXPECT_EQ(ParseDuration("3000000h").error().message, "time: invalid duration \"3000000h\"");
  for (std::int64_t count = 1; count < 4'000'000'000'000'000'000; count = count * 7 + 3) {
    EXPECT_EQ(ParseDuration(FormatDuration(Duration(count)))->count(), count);
  }
}

}  // namespace
}  // namespace drakkar::api
