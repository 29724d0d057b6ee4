#include "cel/library/time.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/text/text.h"

namespace drakkar::cel {
namespace {

std::string Padded(std::int64_t value, std::size_t width) {
  std::string digits = std::to_string(value);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

// Fixed-width digits at the front of `text`.
bool TakeNumber(std::string_view& text, std::size_t width, int* out) {
  if (text.size() < width) return false;
  *out = 0;
  for (std::size_t i = 0; i < width; ++i) {
    if (!IsDigit(text[i])) return false;
    *out = *out * 10 + (text[i] - '0');
  }
  text.remove_prefix(width);
  return true;
}
bool TakeChar(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

int DaysInMonth(std::int64_t year, int month) {
  static constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return month == 2 && leap ? 29 : kDays[static_cast<std::size_t>(month - 1)];
}

// Daylight saving by rule: the day is the n-th (5: last) Sunday of a month, at a local hour.
struct Change {
  int month;
  int nth_sunday;
  int hour_utc_standard;  // in standard time of the zone
};
struct Zone {
  std::string_view name;
  int offset_minutes;
  bool has_summer_time;
  Change start;
  Change end;  // hour in standard time
};

// Zones with the rules in force since 2007 (United States), 1996 (Europe) and 2008 (Australia).
// Expressions about earlier years in other zones should use an offset instead.
constexpr Change kUsStart{3, 2, 2};
constexpr Change kUsEnd{11, 1, 1};
constexpr std::array<Zone, 22> kZones = {{
    {"UTC", 0, false, {}, {}},
    {"GMT", 0, false, {}, {}},
    {"Etc/UTC", 0, false, {}, {}},
    {"America/New_York", -300, true, kUsStart, kUsEnd},
    {"US/Eastern", -300, true, kUsStart, kUsEnd},
    {"America/Chicago", -360, true, kUsStart, kUsEnd},
    {"US/Central", -360, true, kUsStart, kUsEnd},
    {"America/Denver", -420, true, kUsStart, kUsEnd},
    {"US/Mountain", -420, true, kUsStart, kUsEnd},
    {"America/Los_Angeles", -480, true, kUsStart, kUsEnd},
    {"US/Pacific", -480, true, kUsStart, kUsEnd},
    {"America/Phoenix", -420, false, {}, {}},
    {"America/St_Johns", -210, true, kUsStart, kUsEnd},
    {"Europe/London", 0, true, {3, 5, 1}, {10, 5, 1}},
    {"Europe/Berlin", 60, true, {3, 5, 2}, {10, 5, 2}},
    {"Europe/Paris", 60, true, {3, 5, 2}, {10, 5, 2}},
    {"Asia/Tokyo", 540, false, {}, {}},
    {"Asia/Shanghai", 480, false, {}, {}},
    {"Asia/Kolkata", 330, false, {}, {}},
    {"Asia/Kathmandu", 345, false, {}, {}},
    {"Australia/Brisbane", 600, false, {}, {}},
    {"Australia/Sydney", 600, true, {10, 1, 2}, {4, 1, 2}},
}};

std::int64_t ChangeSeconds(std::int64_t year, const Change& change) {
  const std::int64_t first = DaysFromCivil(year, change.month, 1);
  const int weekday = static_cast<int>(((first + 4) % 7 + 7) % 7);
  int day = 1 + (7 - weekday) % 7 + 7 * (change.nth_sunday - 1);
  while (day > DaysInMonth(year, change.month)) day -= 7;
  return DaysFromCivil(year, change.month, day) * 86'400 + change.hour_utc_standard * 3'600;
}

}  // namespace

std::int64_t DaysFromCivil(std::int64_t year, int month, int day) {
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146'097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
         719'468;
}

CivilTime ToCivil(std::int64_t seconds) {
  std::int64_t days = seconds / 86'400;
  std::int64_t rest = seconds % 86'400;
  if (rest < 0) {
    rest += 86'400;
    --days;
  }
  CivilTime civil;
  civil.hour = static_cast<int>(rest / 3'600);
  civil.minute = static_cast<int>(rest / 60 % 60);
  civil.second = static_cast<int>(rest % 60);
  civil.day_of_week = static_cast<int>(((days + 4) % 7 + 7) % 7);
  const std::int64_t z = days + 719'468;
  const std::int64_t era = (z >= 0 ? z : z - 146'096) / 146'097;
  const std::int64_t day_of_era = z - era * 146'097;
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1'460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const std::int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t shifted = (5 * day_of_year + 2) / 153;
  civil.day = static_cast<int>(day_of_year - (153 * shifted + 2) / 5 + 1);
  civil.month = static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9);
  civil.year = year_of_era + era * 400 + (civil.month <= 2 ? 1 : 0);
  civil.day_of_year = static_cast<int>(days - DaysFromCivil(civil.year, 1, 1));
  return civil;
}

std::optional<std::int64_t> ParseDuration(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text == "0") return 0;
  if (text.empty()) return std::nullopt;
  __int128 total = 0;
  while (!text.empty()) {
    __int128 whole = 0;
    __int128 fraction = 0;
    __int128 scale = 1;
    std::size_t digits = 0;
    for (; !text.empty() && IsDigit(text[0]); text.remove_prefix(1), ++digits) {
      whole = whole * 10 + (text[0] - '0');
      if (whole > INT64_MAX) return std::nullopt;
    }
    if (TakeChar(text, '.')) {
      for (; !text.empty() && IsDigit(text[0]); text.remove_prefix(1), ++digits) {
        if (scale >= 1'000'000'000'000'000) continue;
        fraction = fraction * 10 + (text[0] - '0');
        scale *= 10;
      }
    }
    if (digits == 0) return std::nullopt;
    struct Unit {
      std::string_view name;
      std::int64_t nanoseconds;
    };
    static constexpr std::array<Unit, 8> kUnits = {{{"ns", 1},
                                                    {"us", 1'000},
                                                    {"\u00b5s", 1'000},
                                                    {"\u03bcs", 1'000},
                                                    {"ms", 1'000'000},
                                                    {"s", 1'000'000'000},
                                                    {"m", 60'000'000'000},
                                                    {"h", 3'600'000'000'000}}};
    std::size_t end = 0;
    while (end < text.size() && text[end] != '.' && !IsDigit(text[end])) ++end;
    std::int64_t unit = 0;
    for (const Unit& candidate : kUnits) {
      if (text.substr(0, end) == candidate.name) unit = candidate.nanoseconds;
    }
    if (unit == 0) return std::nullopt;
    text.remove_prefix(end);
    total += whole * unit + fraction * unit / scale;
    if (total > static_cast<__int128>(INT64_MAX) + 1) return std::nullopt;
  }
  if (negative) total = -total;
  if (total > INT64_MAX) return std::nullopt;
  return static_cast<std::int64_t>(total);
}

std::string DurationText(std::int64_t nanoseconds) {
  const bool negative = nanoseconds < 0;
  const std::uint64_t magnitude = negative ? ~static_cast<std::uint64_t>(nanoseconds) + 1
                                           : static_cast<std::uint64_t>(nanoseconds);
  std::string text = StrCat(negative ? "-" : "", magnitude / 1'000'000'000);
  if (const std::uint64_t fraction = magnitude % 1'000'000'000; fraction != 0) {
    std::string digits = Padded(static_cast<std::int64_t>(fraction), 9);
    while (digits.ends_with('0')) digits.pop_back();
    text += "." + digits;
  }
  return text + "s";
}

std::optional<Instant> ParseTimestamp(std::string_view text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (!TakeNumber(text, 4, &year) || !TakeChar(text, '-') || !TakeNumber(text, 2, &month) ||
      !TakeChar(text, '-') || !TakeNumber(text, 2, &day) || !TakeChar(text, 'T') ||
      !TakeNumber(text, 2, &hour) || !TakeChar(text, ':') || !TakeNumber(text, 2, &minute) ||
      !TakeChar(text, ':') || !TakeNumber(text, 2, &second)) {
    return std::nullopt;
  }
  if (month < 1 || month > 12 || day < 1 || day > DaysInMonth(year, month) || hour > 23 ||
      minute > 59 || second > 59) {
    return std::nullopt;
  }
  Instant instant;
  if (TakeChar(text, '.')) {
    std::uint32_t scale = 100'000'000;
    if (text.empty() || !IsDigit(text[0])) return std::nullopt;
    for (; !text.empty() && IsDigit(text[0]); text.remove_prefix(1), scale /= 10) {
      instant.nanoseconds += static_cast<std::uint32_t>(text[0] - '0') * scale;
    }
  }
  int offset = 0;
  if (!TakeChar(text, 'Z')) {
    const bool west = text.starts_with('-');
    int hours = 0, minutes = 0;
    if (!TakeChar(text, west ? '-' : '+') || !TakeNumber(text, 2, &hours) || !TakeChar(text, ':') ||
        !TakeNumber(text, 2, &minutes) || hours > 23 || minutes > 59) {
      return std::nullopt;
    }
    offset = (hours * 3'600 + minutes * 60) * (west ? -1 : 1);
  }
  if (!text.empty()) return std::nullopt;
  instant.seconds =
      DaysFromCivil(year, month, day) * 86'400 + hour * 3'600 + minute * 60 + second - offset;
  if (instant.seconds < kMinTimestampSeconds || instant.seconds > kMaxTimestampSeconds)
    return std::nullopt;
  return instant;
}

std::string TimestampText(Instant instant) {
  const CivilTime civil = ToCivil(instant.seconds);
  std::string text =
      StrCat(Padded(civil.year, 4), "-", Padded(civil.month, 2), "-", Padded(civil.day, 2), "T",
             Padded(civil.hour, 2), ":", Padded(civil.minute, 2), ":", Padded(civil.second, 2));
  if (instant.nanoseconds != 0) {
    std::string digits = Padded(instant.nanoseconds, 9);
    while (digits.ends_with('0')) digits.pop_back();
    text += "." + digits;
  }
  return text + "Z";
}

std::optional<int> ZoneOffset(std::string_view zone, std::int64_t seconds) {
  if (zone.empty()) return 0;
  if (zone.find(':') != std::string_view::npos) {
    bool west = false;
    if (zone[0] == '-' || zone[0] == '+') {
      west = zone[0] == '-';
      zone.remove_prefix(1);
    }
    const std::size_t colon = zone.find(':');
    const std::optional<std::int64_t> hours = ParseInt64(zone.substr(0, colon));
    const std::optional<std::int64_t> minutes = ParseInt64(zone.substr(colon + 1));
    if (!hours || !minutes || *hours < 0 || *hours > 23 || *minutes < 0 || *minutes > 59)
      return std::nullopt;
    return static_cast<int>((*hours * 60 + *minutes) * 60) * (west ? -1 : 1);
  }
  for (const Zone& known : kZones) {
    if (known.name != zone) continue;
    const int standard = known.offset_minutes * 60;
    if (!known.has_summer_time) return standard;
    const std::int64_t local = seconds + standard;
    const std::int64_t year = ToCivil(local).year;
    const std::int64_t start = ChangeSeconds(year, known.start);
    const std::int64_t end = ChangeSeconds(year, known.end);
    const bool summer = start < end ? local >= start && local < end : local >= start || local < end;
    return standard + (summer ? 3'600 : 0);
  }
  return std::nullopt;
}

std::string DoubleText(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "+Inf" : "-Inf";
  char buffer[48];
  const auto scientific =
      std::to_chars(buffer, buffer + sizeof(buffer), number, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<std::size_t>(scientific.ptr - buffer));
  const std::size_t e = text.find('e');
  int exponent = 0;
  std::string_view exponent_text = text.substr(e + 1);
  if (exponent_text.starts_with('+')) exponent_text.remove_prefix(1);
  std::from_chars(exponent_text.data(), exponent_text.data() + exponent_text.size(), exponent);
  // Go switches to exponents here when it prints the shortest digits.
  if (exponent < -4 || exponent >= 21) return std::string(text);
  char fixed[400];
  const auto plain = std::to_chars(fixed, fixed + sizeof(fixed), number, std::chars_format::fixed);
  return std::string(fixed, plain.ptr);
}

}  // namespace drakkar::cel
