#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/env/clock.h"
#include "base/result/result.h"

namespace drakkar::api {

// The schedule of a CronJob: five fields (minute, hour, day of month, month, day of week), or one
// of
// @yearly, @monthly, @weekly, @daily, @hourly and "@every 1h30m". Reads and refuses what the cron
// library of Kubernetes does, in its words.
class CronSchedule {
 public:
  static Result<CronSchedule> Parse(std::string_view text);

  // The first time after `after` in a time zone (an IANA name; empty: UTC). Times that a zone skips
  // in spring do not come, those it repeats in autumn come twice. Nothing if no time comes within
  // five years (February 30th), or the zone is not known.
  std::optional<WallTime> Next(WallTime after, std::string_view zone) const;

 private:
  // A set of numbers as bits; kAny as well if the field was a star.
  using Bits = std::uint64_t;
  static constexpr Bits kAny = Bits{1} << 63;
  struct Field;

  static Result<Bits> ParseField(std::string_view text, const Field& field);
  bool MatchesDay(int day, int weekday) const;

  std::optional<Duration> every_;
  Bits minute_ = 0, hour_ = 0, day_ = 0, month_ = 0, weekday_ = 0;
};

// RFC 3339 as the clocks of a zone show it: "2026-07-09T14:45:00+02:00"; in UTC if the zone is
// empty or not known.
std::string FormatInZone(WallTime time, std::string_view zone);

// What is wrong with the name of a time zone; nothing if there is such a zone.
std::optional<std::string> WhyNoTimeZone(std::string_view name);

}  // namespace drakkar::api
