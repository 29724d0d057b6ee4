#include "controllers/workload/scaled_value.h"

#include "base/text/text.h"

namespace drakkar::controllers {

std::int64_t ScaledValue(api::Value int_or_percent, std::int64_t total, Rounding rounding) {
  if (const auto number = int_or_percent.optional_integer()) return *number;
  std::string_view text = int_or_percent.str();
  if (!text.ends_with('%')) return 0;
  text.remove_suffix(1);
  const std::int64_t hundredths = ParseInt64(text).value_or(0) * total;
  return rounding == Rounding::kUp ? (hundredths + 99) / 100 : hundredths / 100;
}

}  // namespace drakkar::controllers
