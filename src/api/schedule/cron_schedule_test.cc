#include "api/schedule/cron_schedule.h"

#include <gtest/gtest.h>

#include "api/meta/time.h"

namespace drakkar::api {
namespace {

std::string Next(std::string_view schedule, std::string_view after, std::string_view zone = "") {
  const Result<CronSchedule> parsed = CronSchedule::Parse(schedule);
  if (!parsed.ok()) return parsed.error().message;
  const std::optional<WallTime> next = parsed->Next(*ParseTime(after), zone);
  return next ? FormatTime(*next) : "never";
}

TEST(CronSchedule, FindsTheNextTime) {
  EXPECT_EQ(Next("*/15 * * * *", "2026-07-09T14:45:00Z"), "2026-07-09T15:00:00Z");
  EXPECT_EQ(Next("*/15 * * * *", "2026-07-09T14:59:59Z"), "2026-07-09T15:00:00Z");
  EXPECT_EQ(Next("20-35/15 * * * *", "2026-07-09T14:45:00Z"), "2026-07-09T15:20:00Z");
  EXPECT_EQ(Next("0 0 1 jan *", "2026-07-09T14:45:00Z"), "2027-01-01T00:00:00Z");
  EXPECT_EQ(Next("0 9 * * MON", "2026-07-09T14:45:00Z"), "2026-07-13T09:00:00Z");
  EXPECT_EQ(Next("0 0 29 2 *", "2026-07-09T14:45:00Z"), "2028-02-29T00:00:00Z");
  EXPECT_EQ(Next("0 0 30 2 *", "2026-07-09T14:45:00Z"), "never");
  EXPECT_EQ(Next("@hourly", "2026-07-09T14:45:00Z"), "2026-07-09T15:00:00Z");
  EXPECT_EQ(Next("@every 90s", "2026-07-09T14:45:00Z"), "2026-07-09T14:46:30Z");
}

TEST(CronSchedule, ADayOfTheMonthOrOfTheWeekWillDo) {
  EXPECT_EQ(Next("0 0 13 * 5", "2026-07-09T14:45:00Z"), "2026-07-10T00:00:00Z") << "a Friday";
  EXPECT_EQ(Next("0 0 13 * 5", "2026-07-10T14:45:00Z"), "2026-07-13T00:00:00Z") << "a 13th";
  EXPECT_EQ(Next("0 0 13 * *", "2026-07-09T14:45:00Z"), "2026-07-13T00:00:00Z");
}

TEST(CronSchedule, FollowsTheClocksOfAZone) {
  EXPECT_EQ(Next("30 2 * * *", "2026-07-09T14:45:00Z", "Europe/Berlin"), "2026-07-10T00:30:00Z");
  EXPECT_EQ(Next("30 2 * * *", "2026-03-28T12:00:00Z", "Europe/Berlin"), "2026-03-30T00:30:00Z")
      << "there is no half past two on the 29th";
  EXPECT_EQ(Next("30 2 * * *", "2026-10-24T12:00:00Z", "Europe/Berlin"), "2026-10-25T00:30:00Z");
  EXPECT_EQ(Next("30 2 * * *", "2026-10-25T00:30:00Z", "Europe/Berlin"), "2026-10-25T01:30:00Z")
      << "and two of them on the 25th";
}

TEST(CronSchedule, SaysWhatIsWrong) {
  EXPECT_EQ(Next("* * * *", "2026-07-09T14:45:00Z"),
            "expected exactly 5 fields, found 4: [* * * *]");
  EXPECT_EQ(Next("60 * * * *", "2026-07-09T14:45:00Z"), "end of range (60) above maximum (59): 60");
  EXPECT_EQ(Next("* * 0 * *", "2026-07-09T14:45:00Z"),
            "beginning of range (0) below minimum (1): 0");
  EXPECT_EQ(Next("5-3 * * * *", "2026-07-09T14:45:00Z"),
            "beginning of range (5) beyond end of range (3): 5-3");
  EXPECT_EQ(Next("*/0 * * * *", "2026-07-09T14:45:00Z"),
            "step of range should be a positive number: */0");
  EXPECT_EQ(Next("@never", "2026-07-09T14:45:00Z"), "unrecognized descriptor: @never");
  EXPECT_EQ(Next("x * * * *", "2026-07-09T14:45:00Z"),
            "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax");
}

TEST(WhyNoTimeZone, KnowsTheZonesOfThisMachineAndNoPaths) {
  EXPECT_FALSE(WhyNoTimeZone("Europe/Berlin"));
  EXPECT_FALSE(WhyNoTimeZone("Etc/UTC"));
  EXPECT_EQ(WhyNoTimeZone("Mars/Base"), "unknown time zone Mars/Base");
  EXPECT_EQ(WhyNoTimeZone("../../etc/passwd"), "unknown time zone ../../etc/passwd");
  EXPECT_TRUE(WhyNoTimeZone("Local"));
}

}  // namespace
}  // namespace drakkar::api
