#include "api/meta/age.h"

#include <cstdint>

#include "base/text/text.h"

namespace drakkar::api {
namespace {

// "2h5m", or "2h" if the remainder is zero.
std::string TwoUnits(std::int64_t large, char large_unit, std::int64_t small, char small_unit) {
  return small == 0 ? StrCat(large, large_unit) : StrCat(large, large_unit, small, small_unit);
}

}  // namespace

std::string FormatAge(Duration age) {
  const std::int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return StrCat(seconds, 's');
  const std::int64_t minutes = seconds / 60;
  if (minutes < 10) return TwoUnits(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return StrCat(minutes, 'm');
  const std::int64_t hours = minutes / 60;
  if (hours < 8) return TwoUnits(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return StrCat(hours, 'h');
  const std::int64_t days = hours / 24;
  if (days < 8) return TwoUnits(days, 'd', hours % 24, 'h');
  if (days < 2 * 365) return StrCat(days, 'd');
  if (days < 8 * 365) return TwoUnits(days / 365, 'y', days % 365, 'd');
  return StrCat(days / 365, 'y');
}

}  // namespace drakkar::api
