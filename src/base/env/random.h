#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace drakkar {

// The only access to randomness.
class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t Next() = 0;

  // Uniform in [0, bound); `bound` must not be zero.
  std::uint64_t Below(std::uint64_t bound);
  // Uniform in [0, 1).
  double Fraction();
  // `length` characters of the alphabet Kubernetes uses for generated name suffixes.
  std::string NameSuffix(std::size_t length);
};

// The kernel's generator; suitable for tokens and keys. Thread-safe.
Random& RealRandom();

// xoshiro256**: the same seed gives the same numbers on every machine. Not for secrets.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed);
  std::uint64_t Next() override;

 private:
  std::uint64_t state_[4];
};

}  // namespace drakkar
