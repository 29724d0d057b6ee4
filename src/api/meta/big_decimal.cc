#include "api/meta/big_decimal.h"

#include <array>
#include <charconv>

namespace drakkar::api {
namespace {

constexpr std::uint32_t kBase = 1'000'000'000;
constexpr std::int64_t kDigitsPerLimb = 9;

constexpr std::array<std::uint32_t, 9> kPow10 = {1,       10,        100,        1'000,      10'000,
                                                 100'000, 1'000'000, 10'000'000, 100'000'000};

}  // namespace

BigDecimal::BigDecimal(std::int64_t unscaled, std::int64_t scale)
    : negative_(unscaled < 0), scale_(scale) {
  std::uint64_t magnitude =
      negative_ ? ~static_cast<std::uint64_t>(unscaled) + 1 : static_cast<std::uint64_t>(unscaled);
  for (; magnitude != 0; magnitude /= kBase) {
    limbs_.push_back(static_cast<std::uint32_t>(magnitude % kBase));
  }
}

std::optional<BigDecimal> BigDecimal::Parse(std::string_view text) {
  BigDecimal result;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    result.negative_ = text[0] == '-';
    text.remove_prefix(1);
  }
  if (static_cast<std::int64_t>(text.size()) > kMaxDigits) return std::nullopt;
  std::string digits;
  std::size_t point = text.size();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '.' && point == text.size()) {
      point = i;
    } else if (text[i] >= '0' && text[i] <= '9') {
      digits += text[i];
    } else {
      return std::nullopt;
    }
  }
  if (digits.empty()) return std::nullopt;
  if (point != text.size()) result.scale_ = static_cast<std::int64_t>(text.size() - point - 1);
  for (std::size_t end = digits.size(); end > 0;) {
    const std::size_t begin = end > kDigitsPerLimb ? end - kDigitsPerLimb : 0;
    std::uint32_t limb = 0;
    std::from_chars(digits.data() + begin, digits.data() + end, limb);
    result.limbs_.push_back(limb);
    end = begin;
  }
  result.Trim();
  return result;
}

void BigDecimal::Trim() {
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
  if (limbs_.empty()) negative_ = false;
}

std::int64_t BigDecimal::UnscaledLow64() const {
  std::uint64_t low = 0;
  for (std::size_t i = limbs_.size(); i > 0; --i) low = low * kBase + limbs_[i - 1];
  return static_cast<std::int64_t>(negative_ ? ~low + 1 : low);
}

bool BigDecimal::UnscaledFitsInt64() const {
  const BigDecimal low(UnscaledLow64(), scale_);
  return low.negative_ == negative_ && low.limbs_ == limbs_;
}

std::string BigDecimal::UnscaledText() const {
  if (limbs_.empty()) return "0";
  std::string text = negative_ ? "-" : "";
  text += std::to_string(limbs_.back());
  for (std::size_t i = limbs_.size() - 1; i > 0; --i) {
    const std::string limb = std::to_string(limbs_[i - 1]);
    text.append(kDigitsPerLimb - limb.size(), '0');
    text += limb;
  }
  return text;
}

double BigDecimal::UnscaledDouble() const {
  const std::string text = UnscaledText();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    return negative_ ? -__builtin_inf() : __builtin_inf();
  return value;
}

void BigDecimal::MultiplyBy(std::uint32_t factor) {
  std::uint64_t carry = 0;
  for (std::uint32_t& limb : limbs_) {
    carry += static_cast<std::uint64_t>(limb) * factor;
    limb = static_cast<std::uint32_t>(carry % kBase);
    carry /= kBase;
  }
  for (; carry != 0; carry /= kBase) limbs_.push_back(static_cast<std::uint32_t>(carry % kBase));
  Trim();
}

void BigDecimal::MultiplyByInt64(std::int64_t factor) {
  const BigDecimal other(factor, 0);
  Limbs product(limbs_.size() + other.limbs_.size(), 0);
  for (std::size_t i = 0; i < limbs_.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::size_t j = 0; j < other.limbs_.size(); ++j) {
      carry += product[i + j] + static_cast<std::uint64_t>(limbs_[i]) * other.limbs_[j];
      product[i + j] = static_cast<std::uint32_t>(carry % kBase);
      carry /= kBase;
    }
    product[i + other.limbs_.size()] = static_cast<std::uint32_t>(carry);
  }
  negative_ = negative_ != other.negative_;
  limbs_ = std::move(product);
  Trim();
}

std::int64_t BigDecimal::DigitCount() const {
  if (limbs_.empty()) return 0;
  return static_cast<std::int64_t>(limbs_.size() - 1) * kDigitsPerLimb +
         static_cast<std::int64_t>(std::to_string(limbs_.back()).size());
}

void BigDecimal::MultiplyByPow10(std::int64_t digits) {
  if (limbs_.empty()) return;
  MultiplyBy(kPow10[static_cast<std::size_t>(digits % kDigitsPerLimb)]);
  limbs_.insert(limbs_.begin(), static_cast<std::size_t>(digits / kDigitsPerLimb), 0);
}

bool BigDecimal::TruncatePow10(std::int64_t digits) {
  if (limbs_.empty()) return true;
  bool exact = true;
  const auto whole = static_cast<std::size_t>(digits / kDigitsPerLimb);
  if (whole >= limbs_.size()) {
    limbs_.clear();
    return false;
  }
  for (std::size_t i = 0; i < whole; ++i) exact = exact && limbs_[i] == 0;
  limbs_.erase(limbs_.begin(), limbs_.begin() + static_cast<std::ptrdiff_t>(whole));
  const std::uint32_t divisor = kPow10[static_cast<std::size_t>(digits % kDigitsPerLimb)];
  exact = RemainderBy(divisor) == 0 && exact;
  DivideBy(divisor);
  return exact;
}

void BigDecimal::IncrementMagnitude() {
  for (std::uint32_t& limb : limbs_) {
    if (++limb < kBase) return;
    limb = 0;
  }
  limbs_.push_back(1);
}

std::uint32_t BigDecimal::RemainderBy(std::uint32_t divisor) const {
  std::uint64_t remainder = 0;
  for (std::size_t i = limbs_.size(); i > 0; --i) {
    remainder = (remainder * kBase + limbs_[i - 1]) % divisor;
  }
  return static_cast<std::uint32_t>(remainder);
}

void BigDecimal::DivideBy(std::uint32_t divisor) {
  std::uint64_t remainder = 0;
  for (std::size_t i = limbs_.size(); i > 0; --i) {
    remainder = remainder * kBase + limbs_[i - 1];
    limbs_[i - 1] = static_cast<std::uint32_t>(remainder / divisor);
    remainder %= divisor;
  }
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
}

bool BigDecimal::ScaleTo(std::int64_t scale, bool* too_large) {
  *too_large = false;
  if (limbs_.empty()) {
    scale_ = scale;
    return true;
  }
  if (scale >= scale_) {
    if (DigitCount() + (scale - scale_) > kMaxDigits) {
      *too_large = true;
      return true;
    }
    MultiplyByPow10(scale - scale_);
    scale_ = scale;
    return true;
  }
  const bool exact = TruncatePow10(scale_ - scale);
  if (!exact) IncrementMagnitude();
  scale_ = scale;
  return exact;
}

int BigDecimal::CompareMagnitude(const Limbs& a, const Limbs& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (std::size_t i = a.size(); i > 0; --i) {
    if (a[i - 1] != b[i - 1]) return a[i - 1] < b[i - 1] ? -1 : 1;
  }
  return 0;
}

int BigDecimal::Compare(const BigDecimal& other) const {
  if (Sign() != other.Sign()) return Sign() < other.Sign() ? -1 : 1;
  if (Sign() == 0) return 0;
  // Compares the positions of the leading digits before aligning, so that numbers of very different
  // size cost nothing.
  const std::int64_t position = DigitCount() - scale_;
  const std::int64_t other_position = other.DigitCount() - other.scale_;
  int magnitude = position < other_position ? -1 : position > other_position ? 1 : 0;
  if (magnitude == 0) {
    BigDecimal a = *this;
    BigDecimal b = other;
    if (a.scale_ < b.scale_) a.MultiplyByPow10(b.scale_ - a.scale_);
    if (b.scale_ < a.scale_) b.MultiplyByPow10(a.scale_ - b.scale_);
    magnitude = CompareMagnitude(a.limbs_, b.limbs_);
  }
  return negative_ ? -magnitude : magnitude;
}

void BigDecimal::Add(const BigDecimal& other) {
  BigDecimal addend = other;
  const std::int64_t scale = std::max(scale_, other.scale_);
  bool too_large = false;
  ScaleTo(scale, &too_large);
  if (!too_large) addend.ScaleTo(scale, &too_large);
  if (too_large) {
    BigDecimal magnitude = *this;
    magnitude.negative_ = false;
    addend = other;
    addend.negative_ = false;
    if (magnitude.Compare(addend) < 0) *this = other;
    return;
  }
  if (negative_ == addend.negative_ || limbs_.empty() || addend.limbs_.empty()) {
    if (limbs_.empty()) negative_ = addend.negative_;
    limbs_.resize(std::max(limbs_.size(), addend.limbs_.size()) + 1, 0);
    std::uint32_t carry = 0;
    for (std::size_t i = 0; i < limbs_.size(); ++i) {
      const std::uint32_t sum =
          limbs_[i] + carry + (i < addend.limbs_.size() ? addend.limbs_[i] : 0);
      limbs_[i] = sum % kBase;
      carry = sum / kBase;
    }
    Trim();
    return;
  }
  if (CompareMagnitude(limbs_, addend.limbs_) < 0) std::swap(*this, addend);
  std::int64_t borrow = 0;
  for (std::size_t i = 0; i < limbs_.size(); ++i) {
    std::int64_t difference = static_cast<std::int64_t>(limbs_[i]) - borrow -
                              (i < addend.limbs_.size() ? addend.limbs_[i] : 0);
    borrow = difference < 0 ? 1 : 0;
    if (difference < 0) difference += kBase;
    limbs_[i] = static_cast<std::uint32_t>(difference);
  }
  Trim();
}

int BigDecimal::RemoveFactors(std::uint32_t divisor) {
  int times = 0;
  while (!limbs_.empty() && RemainderBy(divisor) == 0) {
    DivideBy(divisor);
    ++times;
  }
  return times;
}

BigDecimal BigDecimal::FloorDividePow10(std::int64_t digits, bool* has_remainder) const {
  BigDecimal quotient = *this;
  *has_remainder = !quotient.TruncatePow10(digits);
  if (*has_remainder && quotient.negative_) quotient.IncrementMagnitude();
  quotient.Trim();
  return quotient;
}

std::string BigDecimal::Text() const {
  std::string text = UnscaledText();
  if (scale_ < 0) {
    if (!limbs_.empty()) text.append(static_cast<std::size_t>(-scale_), '0');
    return text;
  }
  if (scale_ == 0) return text;
  const std::size_t sign = negative_ ? 1 : 0;
  const auto places = static_cast<std::size_t>(scale_);
  if (text.size() - sign <= places) text.insert(sign, places + 1 - (text.size() - sign), '0');
  text.insert(text.size() - places, 1, '.');
  return text;
}

}  // namespace drakkar::api
