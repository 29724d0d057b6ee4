#include "controllers/workload/scaled_value.h"

#include "api/meta/saturated.h"
#include "base/text/text.h"

namespace drakkar::controllers {

std::int64_t ScaledValue(api::Value int_or_percent, std::int64_t total, Rounding rounding) {
  if (const auto number = int_or_percent.optional_integer()) return *number;
  std::string_view text = int_or_percent.str();
  if (!text.ends_with('%')) return 0;
  text.remove_suffix(1);
  // Percentages may be arbitrarily large.
  const std::int64_t hundredths = api::SaturatedMultiply(ParseInt64(text).value_or(0), total);
  return rounding == Rounding::kUp ? api::SaturatedAdd(hundredths, 99) / 100 : hundredths / 100;
}

}  // namespace drakkar::controllers
