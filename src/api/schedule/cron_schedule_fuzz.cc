// Any schedule and any name of a time zone yield a result or an error, in a bounded time. The zone
// is the first line.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/schedule/cron_schedule.h"
#include "base/result/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t line = text.find('\n');
  const std::string_view zone = line == text.npos ? std::string_view() : text.substr(0, line);
  const std::string_view schedule = line == text.npos ? text : text.substr(line + 1);
  const WallTime start = WallTime() + std::chrono::hours(24 * 365 * 57);
  if (!api::WhyNoTimeZone(zone)) CHECK(!api::FormatInZone(start, zone).empty());
  const auto parsed = api::CronSchedule::Parse(schedule);
  if (!parsed.ok()) return 0;
  WallTime after = start;
  for (int i = 0; i < 3; ++i) {
    const auto next = parsed->Next(after, zone);
    if (!next) break;
    CHECK(*next > after);
    after = *next;
  }
  return 0;
}
