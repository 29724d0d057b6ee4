#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drakkar::api {

// An exact decimal number: an integer of any size times 10^-scale. It backs the few quantities that
// do not fit an int64 mantissa.
//
// Bound: no operation produces more than kMaxDigits digits. Parse and ScaleTo reject larger
// results; Add of two numbers that far apart keeps the larger one.
class BigDecimal {
 public:
  static constexpr std::int64_t kMaxDigits = 4'096;

  BigDecimal() = default;
  BigDecimal(std::int64_t unscaled, std::int64_t scale);

  // "[+-]digits[.digits]", with at least one digit.
  static std::optional<BigDecimal> Parse(std::string_view text);

  std::int64_t scale() const { return scale_; }
  void set_scale(std::int64_t scale) { scale_ = scale; }
  int Sign() const { return limbs_.empty() ? 0 : negative_ ? -1 : 1; }
  void Negate() { negative_ = !negative_ && !limbs_.empty(); }

  // The lowest 64 bits of the unscaled integer, in two's complement.
  std::int64_t UnscaledLow64() const;
  bool UnscaledFitsInt64() const;
  std::string UnscaledText() const;
  double UnscaledDouble() const;

  // Multiplies the unscaled integer.
  void MultiplyBy(std::uint32_t factor);
  void MultiplyByInt64(std::int64_t factor);

  // Changes the scale, rounding away from zero. Returns false if digits were lost. If the result
  // would exceed kMaxDigits, sets `*too_large` and changes nothing.
  bool ScaleTo(std::int64_t scale, bool* too_large);

  void Add(const BigDecimal& other);
  int Compare(const BigDecimal& other) const;

  // Divides the unscaled integer by `divisor` as often as it is divisible; returns how often.
  int RemoveFactors(std::uint32_t divisor);

  // floor(unscaled / 10^digits), and whether there was a remainder.
  BigDecimal FloorDividePow10(std::int64_t digits, bool* has_remainder) const;

  std::string Text() const;  // plain notation with `scale` places

 private:
  using Limbs = std::vector<std::uint32_t>;  // base 10^9, least significant first, no leading zero

  static int CompareMagnitude(const Limbs& a, const Limbs& b);
  std::int64_t DigitCount() const;
  void MultiplyByPow10(std::int64_t digits);
  bool TruncatePow10(std::int64_t digits);  // true if nothing was discarded
  void IncrementMagnitude();
  std::uint32_t RemainderBy(std::uint32_t divisor) const;
  void DivideBy(std::uint32_t divisor);
  void Trim();

  bool negative_ = false;
  Limbs limbs_;
  std::int64_t scale_ = 0;
};

}  // namespace drakkar::api
