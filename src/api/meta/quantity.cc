#include "api/meta/quantity.h"

#include <array>
#include <charconv>
#include <limits>

#include "api/meta/big_decimal.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

using Format = Quantity::Format;

constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMinInt64 = std::numeric_limits<std::int64_t>::min();
constexpr int kMaxInt64Digits = 18;

Error FormatError() {
  return InvalidArgument(
      "quantities must match the regular expression "
      "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
}
Error NumericError() {
  return InvalidArgument("unable to parse numeric part of quantity");
}
Error SuffixError() {
  return InvalidArgument("unable to parse quantity's suffix");
}

struct Parts {
  bool positive = true;
  std::string_view value;        // sign, digits and point
  std::string_view numerator;    // digits before the point without leading zeros, or "0"
  std::string_view denominator;  // digits after it
  std::string_view suffix;
};

// Splits without validating number or suffix. A text that ends within its leading zeros is zero.
std::optional<Parts> SplitText(std::string_view text) {
  Parts parts;
  std::size_t at = 0;
  if (text[0] == '-' || text[0] == '+') {
    parts.positive = text[0] == '+';
    at = 1;
  }
  while (at < text.size() && text[at] == '0') ++at;
  if (at == text.size()) {
    parts.numerator = parts.value = "0";
    return parts;
  }
  const auto take_digits = [&] {
    const std::size_t begin = at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    return text.substr(begin, at - begin);
  };
  parts.numerator = take_digits();
  if (parts.numerator.empty()) parts.numerator = "0";
  if (at < text.size() && text[at] == '.') {
    ++at;
    parts.denominator = take_digits();
  }
  parts.value = text.substr(0, at);
  parts.suffix = text.substr(at);
  while (at < text.size() &&
         std::string_view("eEinumkKMGTP").find(text[at]) != std::string_view::npos)
    ++at;
  if (at == text.size()) return parts;
  if (text[at] == '-' || text[at] == '+') ++at;
  take_digits();
  if (at < text.size()) return std::nullopt;
  return parts;
}

struct Suffix {
  int base;
  std::int32_t exponent;
  Format format;
};

constexpr std::array<std::string_view, 10> kDecimalSuffixes = {"n", "u", "m", "",  "k",
                                                               "M", "G", "T", "P", "E"};
constexpr std::array<std::string_view, 7> kBinarySuffixes = {"",   "Ki", "Mi", "Gi",
                                                             "Ti", "Pi", "Ei"};

std::optional<Suffix> ReadSuffix(std::string_view text) {
  for (std::size_t i = 0; i < kDecimalSuffixes.size(); ++i) {
    if (text == kDecimalSuffixes[i]) {
      return Suffix{10, static_cast<std::int32_t>(i) * 3 - 9, Format::kDecimalSI};
    }
  }
  for (std::size_t i = 1; i < kBinarySuffixes.size(); ++i) {
    if (text == kBinarySuffixes[i]) {
      return Suffix{2, static_cast<std::int32_t>(i) * 10, Format::kBinarySI};
    }
  }
  if (text.size() > 1 && (text[0] == 'e' || text[0] == 'E')) {
    std::string_view digits = text.substr(1);
    if (digits[0] == '+') digits.remove_prefix(1);
    if (digits.empty() || digits.starts_with('+')) return std::nullopt;
    const std::optional<std::int64_t> exponent = ParseInt64(digits);
    if (!exponent) return std::nullopt;
    return Suffix{10, static_cast<std::int32_t>(*exponent), Format::kDecimalExponent};
  }
  return std::nullopt;
}

// Exponents that have no suffix print none, as in Kubernetes.
std::string DecimalSuffix(std::int64_t exponent, Format format) {
  if (format == Format::kDecimalExponent) return exponent == 0 ? "" : StrCat("e", exponent);
  const std::int64_t index = exponent / 3 + 3;
  if (index < 0 || index >= static_cast<std::int64_t>(kDecimalSuffixes.size())) return "";
  return std::string(kDecimalSuffixes[static_cast<std::size_t>(index)]);
}

// base * 10^scale, or nothing if that overflows. `scale` is not negative.
std::optional<std::int64_t> ScaleUp(std::int64_t base, std::int64_t scale) {
  if (base == 0) return 0;
  for (; scale > 0; --scale) {
    if (base == kMinInt64 || __builtin_mul_overflow(base, 10, &base)) return std::nullopt;
  }
  return base;
}

// base / 10^scale, rounded away from zero.
std::int64_t ScaleDown(std::int64_t base, std::int64_t scale, bool* exact) {
  bool fraction = false;
  std::int64_t value = base;
  for (; scale > 0 && value != 0; --scale) {
    fraction = fraction || value % 10 != 0;
    value /= 10;
  }
  *exact = !fraction;
  if (fraction) value += base > 0 ? 1 : -1;
  return value;
}

double Pow10(std::int64_t exponent) {
  if (exponent < -323) return 0;
  if (exponent > 308) return std::numeric_limits<double>::infinity();
  static constexpr std::array<double, 32> kSmall = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23,
                                                    1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31};
  static constexpr std::array<double, 10> kUp = {1e0,   1e32,  1e64,  1e96,  1e128,
                                                 1e160, 1e192, 1e224, 1e256, 1e288};
  static constexpr std::array<double, 11> kDown = {1e0,    1e-32,  1e-64,  1e-96,  1e-128, 1e-160,
                                                   1e-192, 1e-224, 1e-256, 1e-288, 1e-320};
  const auto size = static_cast<std::size_t>(exponent < 0 ? -exponent : exponent);
  if (exponent >= 0) return kUp[size / 32] * kSmall[size % 32];
  return kDown[size / 32] / kSmall[size % 32];
}

// A power of ten as the int64 that a float conversion gives: the smallest int64 if it does not fit.
std::int64_t Pow10Int64(std::int64_t exponent) {
  return exponent <= kMaxInt64Digits ? *ScaleUp(1, exponent) : kMinInt64;
}

std::int64_t WrappingMultiply(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

// ceil(unscaled * 10^(new_scale - scale)); overflow wraps as in Kubernetes.
std::int64_t ScaledDecimalValue(const BigDecimal& decimal, std::int64_t new_scale) {
  const std::int64_t difference = decimal.scale() - new_scale;
  if (difference == 0) return decimal.UnscaledLow64();
  if (difference < 0) return WrappingMultiply(decimal.UnscaledLow64(), Pow10Int64(-difference));
  const BigDecimal limit(kMaxInt64, decimal.scale());
  if (difference <= kMaxInt64Digits && decimal.Compare(limit) < 0) {
    const std::int64_t divisor = Pow10Int64(difference);
    const std::int64_t unscaled = decimal.UnscaledLow64();
    return unscaled / divisor + (unscaled % divisor != 0 ? 1 : 0);
  }
  bool has_remainder = false;
  const std::int64_t floor = decimal.FloorDividePow10(difference, &has_remainder).UnscaledLow64();
  return has_remainder ? static_cast<std::int64_t>(static_cast<std::uint64_t>(floor) + 1) : floor;
}

// Whether Kubernetes would print the text as written, and our canonical form differs from it.
bool KeepsText(std::string_view text, const Parts& parts, const Suffix& suffix, std::int64_t scale,
               std::uint64_t digits) {
  if (suffix.format == Format::kBinarySI) {
    if ((digits & 7) == 0) return false;
  } else {
    const std::string shifted = StrCat(parts.numerator, parts.denominator);
    if (scale % 3 != 0 || shifted.ends_with("000") || shifted[0] == '0') return false;
  }
  return text.find_first_of("+.E") != std::string_view::npos || text[0] == '0' ||
         text.starts_with("-0") || text.ends_with("e0") ||
         text.find("e0") != std::string_view::npos || text.find("e-0") != std::string_view::npos;
}

}  // namespace

std::string_view QuantityFormatName(Format format) {
  switch (format) {
    case Format::kDecimalSI:
      return "DecimalSI";
    case Format::kBinarySI:
      return "BinarySI";
    case Format::kDecimalExponent:
      return "DecimalExponent";
  }
  return "";
}

Quantity Quantity::Scaled(std::int64_t value, std::int32_t scale, Format format) {
  Quantity quantity(value, format);
  quantity.scale_ = scale;
  return quantity;
}

Result<Quantity> Quantity::Parse(std::string_view text) {
  if (text.empty()) return FormatError();
  const std::optional<Parts> parts = SplitText(text);
  if (!parts) return FormatError();
  const std::optional<Suffix> suffix = ReadSuffix(parts->suffix);
  if (!suffix) return SuffixError();

  // Few enough digits fit an int64. The limits are Kubernetes' and must be kept: they decide
  // whether AsInt64 returns a value.
  const auto numerator_size = static_cast<std::int64_t>(parts->numerator.size());
  const auto denominator_size = static_cast<std::int64_t>(parts->denominator.size());
  bool fast = false;
  std::int64_t scale = 0;
  std::int64_t factor = 1;
  if (suffix->format == Format::kBinarySI) {
    fast = denominator_size == 0 && 14 - numerator_size - suffix->exponent * 3 / 10 >= 0;
    factor = std::int64_t{1} << suffix->exponent;
  } else {
    fast = numerator_size + denominator_size <= kMaxInt64Digits;
    scale = static_cast<std::int64_t>(suffix->exponent) - denominator_size;
    fast = fast && scale >= kNano;
  }
  if (fast) {
    const std::string shifted = StrCat(parts->numerator, parts->denominator);
    std::int64_t digits = 0;
    std::from_chars(shifted.data(), shifted.data() + shifted.size(), digits);
    std::int64_t value = 0;
    if (!__builtin_mul_overflow(digits, factor, &value)) {
      Quantity result = Scaled(parts->positive ? value : -value, static_cast<std::int32_t>(scale),
                               suffix->format);
      if (KeepsText(text, *parts, *suffix, scale, static_cast<std::uint64_t>(digits))) {
        result.extra_ = std::make_shared<const Extra>(Extra{nullptr, std::string(text)});
      }
      return result;
    }
  }

  std::optional<BigDecimal> decimal = BigDecimal::Parse(parts->value);
  if (!decimal) return NumericError();
  if (suffix->base == 10) {
    decimal->set_scale(decimal->scale() - suffix->exponent);
  } else {
    for (int i = 0; i < suffix->exponent; i += 10) decimal->MultiplyBy(1024);
  }
  const bool negative = decimal->Sign() < 0;
  if (negative) decimal->Negate();
  Format format = suffix->format;
  // Values too small to represent become the smallest one, and binary quantities never exceed the
  // largest int64.
  if (decimal->Sign() != 0) {
    bool too_large = false;
    decimal->ScaleTo(-kNano, &too_large);
    if (too_large) return NumericError();
  }
  if (format == Format::kBinarySI) {
    const BigDecimal limit(kMaxInt64, 0);
    if (decimal->Compare(limit) > 0) decimal = limit;
    if (decimal->Sign() > 0 && decimal->Compare(BigDecimal(1, 0)) < 0) format = Format::kDecimalSI;
  }
  if (negative) decimal->Negate();
  Quantity result(0, format);
  result.SetDecimal(*std::move(decimal));
  return result;
}

Result<Quantity> Quantity::ParseJson(std::string_view raw) {
  if (raw == "null") return Quantity();
  if (raw.size() >= 2 && raw.front() == '"' && raw.back() == '"') {
    raw = raw.substr(1, raw.size() - 2);
  }
  return Parse(Trim(raw));
}

int Quantity::Sign() const {
  if (const BigDecimal* d = decimal()) return d->Sign();
  return value_ < 0 ? -1 : value_ > 0 ? 1 : 0;
}

BigDecimal Quantity::ToDecimal() const {
  if (const BigDecimal* d = decimal()) return *d;
  return BigDecimal(value_, -static_cast<std::int64_t>(scale_));
}

void Quantity::SetDecimal(BigDecimal decimal) {
  value_ = 0;
  scale_ = 0;
  extra_ = std::make_shared<const Extra>(
      Extra{std::make_shared<const BigDecimal>(std::move(decimal)), std::string()});
}

void Quantity::DropText() {
  if (extra_ && !extra_->decimal) extra_ = nullptr;
}

int Quantity::CompareSlow(const Quantity& other) const {
  if (decimal() || other.decimal()) return ToDecimal().Compare(other.ToDecimal());
  const auto compare = [](auto a, auto b) { return a < b ? -1 : a > b ? 1 : 0; };
  if (scale_ == other.scale_) return compare(value_, other.value_);
  const std::int64_t difference = static_cast<std::int64_t>(scale_) - other.scale_;
  if (difference > kMaxInt64Digits || difference < -kMaxInt64Digits) {
    return ToDecimal().Compare(other.ToDecimal());
  }
  const __int128 factor = *ScaleUp(1, difference < 0 ? -difference : difference);
  return difference > 0 ? compare(value_ * factor, static_cast<__int128>(other.value_))
                        : compare(static_cast<__int128>(value_), other.value_ * factor);
}

bool Quantity::AddFast(std::int64_t value, std::int32_t scale) {
  if (value == 0) return true;
  if (value_ == 0) {
    value_ = value;
    scale_ = scale;
    return true;
  }
  const std::int32_t low = std::min(scale_, scale);
  const std::optional<std::int64_t> a = ScaleUp(value_, static_cast<std::int64_t>(scale_) - low);
  const std::optional<std::int64_t> b = ScaleUp(value, static_cast<std::int64_t>(scale) - low);
  std::int64_t sum = 0;
  if (!a || !b || __builtin_add_overflow(*a, *b, &sum)) return false;
  value_ = sum;
  scale_ = low;
  return true;
}

void Quantity::AddSlow(const Quantity& other, bool negate) {
  BigDecimal addend = other.ToDecimal();
  if (negate) addend.Negate();
  BigDecimal sum = ToDecimal();
  sum.Add(addend);
  SetDecimal(std::move(sum));
}

void Quantity::Add(const Quantity& other) {
  DropText();
  if (IsZero()) format_ = other.format_;
  if (!decimal() && !other.decimal() && AddFast(other.value_, other.scale_)) return;
  AddSlow(other, false);
}

void Quantity::Subtract(const Quantity& other) {
  DropText();
  if (IsZero()) format_ = other.format_;
  if (!decimal() && !other.decimal() && other.value_ != kMinInt64 &&
      AddFast(-other.value_, other.scale_)) {
    return;
  }
  AddSlow(other, true);
}

void Quantity::Negate() {
  DropText();
  if (decimal() || value_ == kMinInt64) {
    BigDecimal negated = ToDecimal();
    negated.Negate();
    SetDecimal(std::move(negated));
    return;
  }
  value_ = -value_;
}

bool Quantity::Multiply(std::int64_t factor) {
  DropText();
  if (!decimal()) {
    if (value_ == 0) return true;
    if (factor == 0) {
      value_ = 0;
      scale_ = 0;
      return true;
    }
    std::int64_t product = 0;
    bool fits = (value_ == 1 || factor == 1 || (value_ != kMinInt64 && factor != kMinInt64)) &&
                !__builtin_mul_overflow(value_, factor, &product);
    if (fits && scale_ > 0) fits = ScaleUp(product, scale_).has_value();
    if (fits && scale_ < 0) ScaleDown(product, -static_cast<std::int64_t>(scale_), &fits);
    if (fits) {
      value_ = product;
      return true;
    }
  }
  BigDecimal product = ToDecimal();
  product.MultiplyByInt64(factor);
  const bool fits = product.UnscaledFitsInt64();
  SetDecimal(std::move(product));
  return fits;
}

bool Quantity::RoundUp(std::int32_t scale) {
  if (decimal()) {
    BigDecimal rounded = ToDecimal();
    bool too_large = false;
    const bool exact = rounded.ScaleTo(-static_cast<std::int64_t>(scale), &too_large);
    SetDecimal(std::move(rounded));
    return exact;
  }
  if (scale_ >= scale) return true;
  DropText();
  bool exact = true;
  value_ = ScaleDown(value_, static_cast<std::int64_t>(scale) - scale_, &exact);
  scale_ = scale;
  return exact;
}

std::int64_t Quantity::ScaledValue(std::int32_t scale) const {
  if (const BigDecimal* d = decimal()) {
    return ScaledDecimalValue(*d, -static_cast<std::int64_t>(scale));
  }
  const std::int64_t difference = static_cast<std::int64_t>(scale_) - scale;
  if (difference >= 0) return ScaleUp(value_, difference).value_or(0);
  bool exact = true;
  return ScaleDown(value_, -difference, &exact);
}

std::optional<std::int64_t> Quantity::AsInt64() const {
  if (decimal() || scale_ < 0) return std::nullopt;
  return ScaleUp(value_, scale_);
}

double Quantity::AsApproximateFloat() const {
  double base = static_cast<double>(value_);
  std::int64_t exponent = scale_;
  if (const BigDecimal* d = decimal()) {
    base = d->UnscaledDouble();
    exponent = -d->scale();
  }
  return exponent == 0 ? base : base * Pow10(exponent);
}

std::string Quantity::ToString() const {
  if (extra_ && !extra_->text.empty()) return extra_->text;
  return Canonical();
}

std::string Quantity::ToDecimalString() const {
  return ToDecimal().Text();
}

std::string Quantity::Canonical() const {
  if (IsZero()) return "0";
  if (format_ != Format::kBinarySI) return CanonicalDecimal(format_);
  // Small or fractional binary quantities are easier to read in decimal.
  if (CompareInt64(-1024) > 0 && CompareInt64(1024) < 0)
    return CanonicalDecimal(Format::kDecimalSI);
  Quantity rounded = *this;
  if (!rounded.RoundUp(0)) return CanonicalDecimal(Format::kDecimalSI);
  return rounded.CanonicalBinary();
}

std::string Quantity::CanonicalDecimal(Format format) const {
  if (!decimal()) {
    std::int64_t amount = value_;
    std::int64_t exponent = scale_;
    while (amount % 10 == 0 && amount != 0) {
      amount /= 10;
      ++exponent;
    }
    const std::int64_t extra = (exponent % 3 + 3) % 3;
    if (const std::optional<std::int64_t> padded = ScaleUp(amount, extra)) {
      return StrCat(*padded, DecimalSuffix(exponent - extra, format));
    }
  }
  BigDecimal amount = ToDecimal();
  std::int64_t exponent = -amount.scale() + amount.RemoveFactors(10);
  for (; exponent % 3 != 0; --exponent) amount.MultiplyBy(10);
  return amount.UnscaledText() + DecimalSuffix(exponent, format);
}

std::string Quantity::CanonicalBinary() const {
  std::string number;
  int times = 0;
  const std::optional<std::int64_t> value = AsInt64();
  if (value) {
    std::int64_t amount = *value;
    while (amount % 1024 == 0 && amount != 0) {
      amount /= 1024;
      ++times;
    }
    number = std::to_string(amount);
  } else {
    BigDecimal amount = ToDecimal();
    bool too_large = false;
    amount.ScaleTo(0, &too_large);
    times = amount.RemoveFactors(1024);
    number = amount.UnscaledText();
  }
  const auto index = static_cast<std::size_t>(times);
  return StrCat(number, index < kBinarySuffixes.size() ? kBinarySuffixes[index] : "");
}

}  // namespace drakkar::api
