#include "api/meta/time.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/text/text.h"

namespace drakkar::api {
namespace {

constexpr std::string_view kTimeLayout = "2006-01-02T15:04:05Z07:00";
constexpr std::string_view kMicroTimeLayout = "2006-01-02T15:04:05.000000Z07:00";

struct Moment {
  std::int64_t seconds;  // since 1970
  std::int32_t nanoseconds;
};

// Parses the parts of a time in order. Errors are those of Go's time.Parse.
class TimeParser {
 public:
  TimeParser(std::string_view text, bool micro) : text_(text), rest_(text), micro_(micro) {}

  Result<Moment> Parse() {
    if (!Number("2006", 4, year_) || !Literal('-') || !Number("01", 2, month_) ||
        !Check(month_ >= 1 && month_ <= 12, "month") || !Literal('-') || !Number("02", 2, day_) ||
        !Literal('T') || !Number("15", 2, hour_) || !Check(hour_ < 24, "hour") || !Literal(':') ||
        !Number("04", 2, minute_) || !Check(minute_ < 60, "minute") || !Literal(':') ||
        !Number("05", 2, second_) || !Check(second_ < 60, "second") || !Fraction() || !Zone()) {
      return InvalidArgument(error_);
    }
    if (!rest_.empty()) {
      return InvalidArgument(StrCat("parsing time ", Quote(text_), ": extra text: ", Quote(rest_)));
    }
    const std::chrono::year_month_day date(std::chrono::year(year_),
                                           std::chrono::month(static_cast<unsigned>(month_)),
                                           std::chrono::day(static_cast<unsigned>(day_)));
    if (!Check(date.ok(), "day")) return InvalidArgument(error_);
    const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
    return Moment{days * 86400 + hour_ * 3600 + minute_ * 60 + second_ - offset_seconds_,
                  nanoseconds_};
  }

 private:
  bool Fail(std::string_view wanted) {
    error_ = StrCat("parsing time ", Quote(text_), " as ",
                    Quote(micro_ ? kMicroTimeLayout : kTimeLayout), ": cannot parse ", Quote(rest_),
                    " as ", Quote(wanted));
    return false;
  }

  bool Check(bool in_range, std::string_view what) {
    if (!in_range) error_ = StrCat("parsing time ", Quote(text_), ": ", what, " out of range");
    return in_range;
  }

  bool Number(std::string_view layout, std::size_t digits, int& out) {
    if (rest_.size() < digits) return Fail(layout);
    int value = 0;
    for (const char c : rest_.substr(0, digits)) {
      if (c < '0' || c > '9') return Fail(layout);
      value = value * 10 + (c - '0');
    }
    out = value;
    rest_.remove_prefix(digits);
    return true;
  }

  bool Literal(char wanted) {
    if (rest_.empty() || rest_[0] != wanted) return Fail(std::string_view(&wanted, 1));
    rest_.remove_prefix(1);
    return true;
  }

  bool Fraction() {
    std::size_t digits = 0;
    if (!rest_.empty() && (rest_[0] == '.' || rest_[0] == ',')) {
      while (digits + 1 < rest_.size() && rest_[digits + 1] >= '0' && rest_[digits + 1] <= '9') {
        ++digits;
      }
    }
    if (micro_ && (digits < 6 || rest_[0] != '.')) return Fail(".000000");
    if (digits == 0) return true;
    if (micro_) digits = 6;
    std::int32_t scale = 100'000'000;
    for (std::size_t i = 1; i <= digits && scale > 0; ++i, scale /= 10) {
      nanoseconds_ += (rest_[i] - '0') * scale;
    }
    rest_.remove_prefix(digits + 1);
    return true;
  }

  bool Zone() {
    if (!rest_.empty() && rest_[0] == 'Z') {
      rest_.remove_prefix(1);
      return true;
    }
    const std::string_view zone = rest_;
    const auto digit = [&](std::size_t i) { return zone[i] >= '0' && zone[i] <= '9'; };
    if (zone.size() < 6 || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':' || !digit(1) ||
        !digit(2) || !digit(4) || !digit(5)) {
      return Fail("Z07:00");
    }
    const int hours = (zone[1] - '0') * 10 + (zone[2] - '0');
    const int minutes = (zone[4] - '0') * 10 + (zone[5] - '0');
    if (!Check(hours <= 24, "time zone offset hour")) return false;
    if (!Check(minutes < 60, "time zone offset minute")) return false;
    offset_seconds_ = (hours * 60 + minutes) * 60 * (zone[0] == '-' ? -1 : 1);
    rest_.remove_prefix(6);
    return true;
  }

  const std::string_view text_;
  std::string_view rest_;
  const bool micro_;
  std::string error_;
  int year_ = 0, month_ = 0, day_ = 0, hour_ = 0, minute_ = 0, second_ = 0;
  int offset_seconds_ = 0;
  std::int32_t nanoseconds_ = 0;
};

void AppendPadded(std::string& out, std::int64_t value, int width) {
  char digits[20];
  for (int i = width - 1; i >= 0; --i, value /= 10) digits[i] = static_cast<char>('0' + value % 10);
  out.append(digits, static_cast<std::size_t>(width));
}

// Four digits, or more if needed, as Go writes it: an offset can move a time out of the years 0 to
// 9999.
void AppendYear(std::string& out, int year) {
  if (year < 0) out += '-';
  const int value = year < 0 ? -year : year;
  if (value > 9999) {
    out += std::to_string(value);
  } else {
    AppendPadded(out, value, 4);
  }
}

std::string Format(Moment moment, bool micro) {
  using std::chrono::days;
  const std::int64_t day =
      moment.seconds >= 0 ? moment.seconds / 86400 : (moment.seconds - 86399) / 86400;
  const std::int64_t in_day = moment.seconds - day * 86400;
  const std::chrono::year_month_day date{std::chrono::sys_days(days(static_cast<int>(day)))};
  std::string out;
  out.reserve(32);
  AppendYear(out, static_cast<int>(date.year()));
  out += '-';
  AppendPadded(out, static_cast<unsigned>(date.month()), 2);
  out += '-';
  AppendPadded(out, static_cast<unsigned>(date.day()), 2);
  out += 'T';
  AppendPadded(out, in_day / 3600, 2);
  out += ':';
  AppendPadded(out, in_day / 60 % 60, 2);
  out += ':';
  AppendPadded(out, in_day % 60, 2);
  if (micro) {
    out += '.';
    AppendPadded(out, moment.nanoseconds / 1000, 6);
  }
  return out += 'Z';
}

Moment ToMoment(WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return {seconds.time_since_epoch().count(), static_cast<std::int32_t>((time - seconds).count())};
}

Result<WallTime> ToWallTime(Result<Moment> moment, std::string_view text) {
  if (!moment.ok()) return std::move(moment).error();
  constexpr std::int64_t kMaxSeconds = std::numeric_limits<std::int64_t>::max() / 1'000'000'000 - 1;
  if (moment->seconds > kMaxSeconds || moment->seconds < -kMaxSeconds) {
    return InvalidArgument(
        StrCat("the time ", Quote(text), " is too far away to be computed with"));
  }
  return WallTime(std::chrono::seconds(moment->seconds) +
                  std::chrono::nanoseconds(moment->nanoseconds));
}

Result<std::string> Normalize(std::string_view text, bool micro) {
  ASSIGN_OR_RETURN(const Moment moment, TimeParser(text, micro).Parse());
  constexpr std::int64_t kYearOne = -62135596800;
  if (moment.seconds == kYearOne && moment.nanoseconds == 0) return std::string();
  return Format(moment, micro);
}

// The nanoseconds of a unit, 0 for an unknown one.
std::int64_t UnitNanoseconds(std::string_view unit) {
  if (unit == "ns") return 1;
  if (unit == "us" || unit == "\xC2\xB5s" || unit == "\xCE\xBCs") return 1'000;
  if (unit == "ms") return 1'000'000;
  if (unit == "s") return 1'000'000'000;
  if (unit == "m") return 60'000'000'000;
  if (unit == "h") return 3'600'000'000'000;
  return 0;
}

// The value with up to `digits` fractional digits, trailing zeros removed.
void AppendFraction(std::string& out, std::uint64_t value, std::uint64_t one, int digits) {
  out += std::to_string(value / one);
  std::uint64_t fraction = value % one;
  if (fraction == 0) return;
  out += '.';
  const std::size_t start = out.size();
  AppendPadded(out, static_cast<std::int64_t>(fraction), digits);
  while (out.size() > start && out.back() == '0') out.pop_back();
}

}  // namespace

Result<WallTime> ParseTime(std::string_view text) {
  return ToWallTime(TimeParser(text, false).Parse(), text);
}

Result<WallTime> ParseMicroTime(std::string_view text) {
  return ToWallTime(TimeParser(text, true).Parse(), text);
}

std::string FormatTime(WallTime time) {
  // It is usually now, so the same second comes again and again.
  thread_local std::int64_t last_second = 0;
  thread_local std::string last = Format({}, false);
  const Moment moment = ToMoment(time);
  if (moment.seconds != last_second) {
    last = Format(moment, false);
    last_second = moment.seconds;
  }
  return last;
}

std::string FormatMicroTime(WallTime time) {
  return Format(ToMoment(time), true);
}

Result<std::string> NormalizeTime(std::string_view text) {
  return Normalize(text, false);
}

Result<std::string> NormalizeMicroTime(std::string_view text) {
  return Normalize(text, true);
}

bool IsNormalTime(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:ddZ";
  if (text.size() != kShape.size()) return false;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kShape[i] == 'd' ? !digit : text[i] != kShape[i]) return false;
  }
  const auto two = [&](std::size_t at) { return (text[at] - '0') * 10 + (text[at + 1] - '0'); };
  // Days after the 28th and years before 1000 take the slow path.
  return text[0] != '0' && two(5) >= 1 && two(5) <= 12 && two(8) >= 1 && two(8) <= 28 &&
         two(11) < 24 && two(14) < 60 && two(17) < 60;
}

Result<Duration> ParseDuration(std::string_view text) {
  const auto invalid = [&] { return InvalidArgument("time: invalid duration " + Quote(text)); };
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 63;
  std::string_view rest = text;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  if (rest == "0") return Duration(0);
  if (rest.empty()) return invalid();
  std::uint64_t total = 0;
  while (!rest.empty()) {
    std::uint64_t whole = 0;
    double fraction = 0;
    std::size_t digits = 0;
    const auto is_digit = [&](std::size_t i) {
      return i < rest.size() && rest[i] >= '0' && rest[i] <= '9';
    };
    std::size_t at = 0;
    for (; is_digit(at); ++at, ++digits) {
      if (whole > kLimit / 10) return invalid();
      whole = whole * 10 + static_cast<std::uint64_t>(rest[at] - '0');
      if (whole > kLimit) return invalid();
    }
    if (at < rest.size() && rest[at] == '.') {
      double scale = 0.1;
      for (++at; is_digit(at); ++at, ++digits, scale /= 10) fraction += (rest[at] - '0') * scale;
    }
    if (digits == 0) return invalid();
    rest.remove_prefix(at);
    std::size_t unit_size = 0;
    while (unit_size < rest.size() && rest[unit_size] != '.' && !is_digit(unit_size)) ++unit_size;
    if (unit_size == 0) return InvalidArgument("time: missing unit in duration " + Quote(text));
    const std::string_view unit = rest.substr(0, unit_size);
    const std::int64_t one = UnitNanoseconds(unit);
    if (one == 0) {
      return InvalidArgument(
          StrCat("time: unknown unit ", Quote(unit), " in duration ", Quote(text)));
    }
    const auto scale = static_cast<std::uint64_t>(one);
    if (whole > kLimit / scale) return invalid();
    const std::uint64_t part =
        whole * scale + static_cast<std::uint64_t>(fraction * static_cast<double>(one) + 1e-6);
    if (part > kLimit || total + part > kLimit) return invalid();
    total += part;
    rest.remove_prefix(unit_size);
  }
  if (!negative && total == kLimit) return invalid();
  return Duration(static_cast<std::int64_t>(negative ? ~total + 1 : total));
}

std::string FormatDuration(Duration duration) {
  const std::int64_t count = duration.count();
  if (count == 0) return "0s";
  std::string out = count < 0 ? "-" : "";
  const std::uint64_t value =
      count < 0 ? ~static_cast<std::uint64_t>(count) + 1 : static_cast<std::uint64_t>(count);
  if (value < 1'000) return out + std::to_string(value) + "ns";
  if (value < 1'000'000) {
    AppendFraction(out, value, 1'000, 3);
    return out + "\xC2\xB5s";
  }
  if (value < 1'000'000'000) {
    AppendFraction(out, value, 1'000'000, 6);
    return out + "ms";
  }
  constexpr std::uint64_t kMinute = 60'000'000'000;
  const std::uint64_t minutes = value / kMinute;
  if (minutes >= 60) out += std::to_string(minutes / 60) + "h";
  if (minutes > 0) out += std::to_string(minutes % 60) + "m";
  AppendFraction(out, value % kMinute, 1'000'000'000, 9);
  return out + "s";
}

}  // namespace drakkar::api
