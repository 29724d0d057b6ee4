#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result/result.h"

namespace drakkar::api {

class BigDecimal;

// A fixed-point number with a suffix ("1500m", "2Gi", "1e3"), as in the Kubernetes API.
//
// Values are exact. Nearly all are an int64 mantissa times a power of ten and compare without
// touching memory; the rest carry a BigDecimal. A quantity written in an unusual but equivalent
// form ("+1", "5.k", "1E3") prints as it was written until it is modified. Results that do not fit
// an int64 wrap as in Kubernetes: check the magnitude first.
class Quantity {
 public:
  enum class Format : std::uint8_t { kDecimalSI, kBinarySI, kDecimalExponent };

  // Powers of ten.
  static constexpr std::int32_t kNano = -9;
  static constexpr std::int32_t kMilli = -3;

  Quantity() = default;  // zero
  explicit Quantity(std::int64_t value, Format format = Format::kDecimalSI)
      : value_(value), format_(format) {}
  static Quantity Scaled(std::int64_t value, std::int32_t scale,
                         Format format = Format::kDecimalSI);
  static Quantity FromMilli(std::int64_t value, Format format = Format::kDecimalSI) {
    return Scaled(value, kMilli, format);
  }

  static Result<Quantity> Parse(std::string_view text);
  // The raw JSON value: a string (its escapes are not interpreted), a number, or null (zero).
  static Result<Quantity> ParseJson(std::string_view raw);

  Format format() const { return format_; }
  bool IsZero() const { return Sign() == 0; }
  int Sign() const;

  int Compare(const Quantity& other) const {
    if (scale_ == other.scale_ && extra_ == nullptr && other.extra_ == nullptr) {
      return value_ < other.value_ ? -1 : value_ > other.value_ ? 1 : 0;
    }
    return CompareSlow(other);
  }
  int CompareInt64(std::int64_t value) const { return Compare(Quantity(value)); }
  bool operator==(const Quantity& other) const { return Compare(other) == 0; }
  std::strong_ordering operator<=>(const Quantity& other) const { return Compare(other) <=> 0; }

  // A zero adopts the other's format.
  void Add(const Quantity& other);
  void Subtract(const Quantity& other);
  void Negate();
  // Returns false if the result does not fit an int64 mantissa (it is exact nevertheless).
  bool Multiply(std::int64_t factor);
  // Rounds away from zero to a multiple of 10^scale; returns false if that changed the value.
  bool RoundUp(std::int32_t scale);

  // ceil(this / 10^scale).
  std::int64_t ScaledValue(std::int32_t scale) const;
  std::int64_t Value() const { return ScaledValue(0); }
  std::int64_t MilliValue() const { return ScaledValue(kMilli); }
  // The value, if it is held as an int64 mantissa with a non-negative scale.
  std::optional<std::int64_t> AsInt64() const;
  double AsApproximateFloat() const;

  std::string ToString() const;         // canonical, or as written
  std::string ToDecimalString() const;  // plain digits

 private:
  // State that the common case does not need.
  struct Extra {
    std::shared_ptr<const BigDecimal> decimal;
    std::string text;
  };

  const BigDecimal* decimal() const { return extra_ ? extra_->decimal.get() : nullptr; }
  BigDecimal ToDecimal() const;
  void SetDecimal(BigDecimal decimal);
  void DropText();
  bool AddFast(std::int64_t value, std::int32_t scale);
  void AddSlow(const Quantity& other, bool negate);
  int CompareSlow(const Quantity& other) const;
  std::string Canonical() const;
  std::string CanonicalDecimal(Format format) const;
  std::string CanonicalBinary() const;

  std::int64_t value_ = 0;  // unused when decimal() is set
  std::int32_t scale_ = 0;
  Format format_ = Format::kDecimalSI;
  std::shared_ptr<const Extra> extra_;
};

std::string_view QuantityFormatName(Quantity::Format format);

}  // namespace drakkar::api
