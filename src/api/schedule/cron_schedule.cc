#include "api/schedule/cron_schedule.h"

#include <algorithm>
#include <array>
#include <span>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::api {

struct CronSchedule::Field {
  int first;
  int last;
  std::span<const std::string_view> names = {};  // the first is `first`
};

namespace {

constexpr std::string_view kMonths[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                        "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::string_view kWeekdays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr int kDaysAhead = 5 * 366;

struct Descriptor {
  std::string_view name;
  std::string_view fields;
};
constexpr Descriptor kDescriptors[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
};

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t begin = text.find_first_not_of(" \t\n\v\f\r");
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(" \t\n\v\f\r"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

// A name where the field has names, else a number that is not negative.
Result<int> ParseNumber(std::string_view text, std::span<const std::string_view> names, int first) {
  const std::string lower = ToLower(text);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == lower) return static_cast<int>(i) + first;
  }
  const std::optional<std::int64_t> number = ParseInt64(text);
  if (!number) {
    return InvalidArgument(StrCat("failed to parse int from ", text, ": strconv.Atoi: parsing ",
                                  Quote(text), ": invalid syntax"));
  }
  if (*number < 0 || *number > 1'000'000) {
    return InvalidArgument(StrCat("negative number (", *number, ") not allowed: ", text));
  }
  return static_cast<int>(*number);
}

absl::Time ToAbsl(WallTime time) {
  return absl::FromChrono(time);
}

WallTime FromAbsl(absl::Time time) {
  return WallTime(
      std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(absl::ToUnixNanos(time))));
}

bool LoadZone(std::string_view name, absl::TimeZone& zone) {
  if (name.empty()) {
    zone = absl::UTCTimeZone();
    return true;
  }
  return absl::LoadTimeZone(std::string(name), &zone);
}

}  // namespace

Result<CronSchedule::Bits> CronSchedule::ParseField(std::string_view text, const Field& field) {
  Bits bits = 0;
  for (std::string_view part : Split(text, ',')) {
    if (part.empty()) continue;
    const std::vector<std::string_view> range_and_step = Split(part, '/');
    const std::vector<std::string_view> ends = Split(range_and_step[0], '-');
    if (range_and_step.size() > 2) return InvalidArgument(StrCat("too many slashes: ", part));
    int first = field.first;
    int last = field.last;
    if (ends[0] == "*" || ends[0] == "?") {
      if (range_and_step.size() == 1) bits |= kAny;
    } else {
      ASSIGN_OR_RETURN(first, ParseNumber(ends[0], field.names, field.first));
      if (ends.size() > 2) return InvalidArgument(StrCat("too many hyphens: ", part));
      if (ends.size() == 2) {
        ASSIGN_OR_RETURN(last, ParseNumber(ends[1], field.names, field.first));
      } else if (range_and_step.size() == 1) {
        last = first;
      }
    }
    int step = 1;
    if (range_and_step.size() == 2) {
      ASSIGN_OR_RETURN(step, ParseNumber(range_and_step[1], {}, 0));
    }
    if (first < field.first) {
      return InvalidArgument(
          StrCat("beginning of range (", first, ") below minimum (", field.first, "): ", part));
    }
    if (last > field.last) {
      return InvalidArgument(
          StrCat("end of range (", last, ") above maximum (", field.last, "): ", part));
    }
    if (first > last) {
      return InvalidArgument(
          StrCat("beginning of range (", first, ") beyond end of range (", last, "): ", part));
    }
    if (step == 0) {
      return InvalidArgument(StrCat("step of range should be a positive number: ", part));
    }
    for (int i = first; i <= last; i += step) bits |= Bits{1} << i;
  }
  return bits;
}

Result<CronSchedule> CronSchedule::Parse(std::string_view text) {
  if (text.empty()) return InvalidArgument("empty spec string");
  CronSchedule schedule;
  if (text.starts_with('@')) {
    constexpr std::string_view kEvery = "@every ";
    if (text.starts_with(kEvery)) {
      const Result<Duration> every = ParseDuration(text.substr(kEvery.size()));
      if (!every.ok()) {
        return InvalidArgument(
            StrCat("failed to parse duration ", text, ": ", every.error().message));
      }
      schedule.every_ = std::max<Duration>(std::chrono::floor<std::chrono::seconds>(*every),
                                           std::chrono::seconds(1));
      return schedule;
    }
    for (const Descriptor& each : kDescriptors) {
      if (each.name == text) return Parse(each.fields);
    }
    return InvalidArgument(StrCat("unrecognized descriptor: ", text));
  }
  const std::vector<std::string_view> words = Words(text);
  if (words.size() != 5) {
    return InvalidArgument(
        StrCat("expected exactly 5 fields, found ", words.size(), ": [", Join(words, " "), "]"));
  }
  ASSIGN_OR_RETURN(schedule.minute_, ParseField(words[0], {0, 59}));
  ASSIGN_OR_RETURN(schedule.hour_, ParseField(words[1], {0, 23}));
  ASSIGN_OR_RETURN(schedule.day_, ParseField(words[2], {1, 31}));
  ASSIGN_OR_RETURN(schedule.month_, ParseField(words[3], {1, 12, kMonths}));
  ASSIGN_OR_RETURN(schedule.weekday_, ParseField(words[4], {0, 6, kWeekdays}));
  return schedule;
}

// Either will do if both fields are restricted.
bool CronSchedule::MatchesDay(int day, int weekday) const {
  const bool by_day = (day_ >> day & 1) != 0;
  const bool by_weekday = (weekday_ >> weekday & 1) != 0;
  if ((day_ & kAny) != 0 || (weekday_ & kAny) != 0) return by_day && by_weekday;
  return by_day || by_weekday;
}

std::optional<WallTime> CronSchedule::Next(WallTime after, std::string_view zone_name) const {
  if (every_) return std::chrono::floor<std::chrono::seconds>(after) + *every_;
  absl::TimeZone zone;
  if (!LoadZone(zone_name, zone)) return std::nullopt;
  const absl::Time start = ToAbsl(after);
  absl::CivilDay day(absl::ToCivilDay(start, zone));
  for (int i = 0; i <= kDaysAhead; ++i, ++day) {
    if ((month_ >> day.month() & 1) == 0) continue;
    const int weekday = (static_cast<int>(absl::GetWeekday(day)) + 1) % 7;
    if (!MatchesDay(day.day(), weekday)) continue;
    std::optional<absl::Time> first;
    for (int hour = 0; hour < 24 && !first; ++hour) {
      if ((hour_ >> hour & 1) == 0) continue;
      for (int minute = 0; minute < 60; ++minute) {
        if ((minute_ >> minute & 1) == 0) continue;
        const absl::TimeZone::TimeInfo info =
            zone.At(absl::CivilSecond(day.year(), day.month(), day.day(), hour, minute, 0));
        if (info.kind == absl::TimeZone::TimeInfo::SKIPPED) continue;
        for (const absl::Time time : {info.pre, info.post}) {
          if (time > start && (!first || time < *first)) first = time;
        }
      }
    }
    if (first) return FromAbsl(*first);
  }
  return std::nullopt;
}

std::string FormatInZone(WallTime time, std::string_view zone_name) {
  absl::TimeZone zone;
  if (zone_name.empty() || !LoadZone(zone_name, zone)) return FormatTime(time);
  return absl::FormatTime("%Y-%m-%dT%H:%M:%S%Ez", ToAbsl(time), zone);
}

std::optional<std::string> WhyNoTimeZone(std::string_view name) {
  if (name.empty()) return "timeZone must be nil or non-empty string";
  constexpr std::size_t kMaxPart = 14;
  for (std::string_view part : Split(name, '/')) {
    const bool fine = !part.empty() && part.size() <= kMaxPart && part != "." && part != ".." &&
                      part[0] != '-' && std::ranges::all_of(part, [](char c) {
                        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                               (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' ||
                               c == '+';
                      });
    if (!fine) return StrCat("unknown time zone ", name);
  }
  if (ToLower(name) == "local") {
    return "timeZone must be an explicit time zone as defined in "
           "https://www.iana.org/time-zones";
  }
  absl::TimeZone zone;
  if (!LoadZone(name, zone)) return StrCat("unknown time zone ", name);
  return std::nullopt;
}

}  // namespace drakkar::api
