#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace drakkar::cel {

// A range of sizes or costs; arithmetic saturates.
struct Estimate {
  static constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t min = 0;
  std::uint64_t max = 0;

  static Estimate Exactly(std::uint64_t value) { return {value, value}; }
  static Estimate Unknown() { return {0, kUnbounded}; }

  Estimate Plus(Estimate other) const { return {Add(min, other.min), Add(max, other.max)}; }
  Estimate Times(Estimate other) const {
    return {Multiply(min, other.min), Multiply(max, other.max)};
  }
  Estimate Scaled(double factor) const { return {Scale(min, factor), Scale(max, factor)}; }
  Estimate Union(Estimate other) const {
    return {min < other.min ? min : other.min, max > other.max ? max : other.max};
  }

 private:
  static std::uint64_t Add(std::uint64_t a, std::uint64_t b) {
    return b > kUnbounded - a ? kUnbounded : a + b;
  }
  static std::uint64_t Multiply(std::uint64_t a, std::uint64_t b) {
    return b != 0 && a > kUnbounded / b ? kUnbounded : a * b;
  }
  static std::uint64_t Scale(std::uint64_t value, double factor) {
    const double number = static_cast<double>(value);
    if (number > 0 && factor > 0 && number > 18446744073709551615.0 / factor) return kUnbounded;
    const double scaled = std::ceil(number * factor);
    return scaled >= 18446744073709551616.0 ? kUnbounded : static_cast<std::uint64_t>(scaled);
  }
};

}  // namespace drakkar::cel
