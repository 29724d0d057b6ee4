#include "cli/age.h"

#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::cli {

std::string AgeOf(std::string_view time, WallTime now) {
  if (time.empty()) return "<unknown>";
  const Result<WallTime> parsed = api::ParseTime(time);
  if (!parsed.ok()) return "<unknown>";
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - *parsed).count();
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return StrCat(seconds, "s");
  // Two units while the larger one is small.
  auto two = [](std::int64_t large, std::string_view unit, std::int64_t small,
                std::string_view small_unit) {
    return small == 0 ? StrCat(large, unit) : StrCat(large, unit, small, small_unit);
  };
  const std::int64_t minutes = seconds / 60;
  if (minutes < 10) return two(minutes, "m", seconds % 60, "s");
  if (minutes < 180) return StrCat(minutes, "m");
  const std::int64_t hours = minutes / 60;
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  if (hours < 48) return StrCat(hours, "h");
  const std::int64_t days = hours / 24;
  if (hours < 192) return two(days, "d", hours % 24, "h");
  if (days < 730) return StrCat(days, "d");
  if (days < 365 * 8) return two(days / 365, "y", days % 365, "d");
  return StrCat(days / 365, "y");
}

}  // namespace drakkar::cli
