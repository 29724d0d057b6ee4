#include <sys/random.h>

#include <bit>
#include <mutex>

#include "base/env/random.h"
#include "base/result/check.h"

namespace drakkar {
namespace {

class KernelRandom final : public Random {
 public:
  std::uint64_t Next() override {
    std::lock_guard lock(mutex_);
    if (used_ == kBuffered) {
      CHECK(getrandom(buffer_, sizeof(buffer_), 0) == static_cast<ssize_t>(sizeof(buffer_)));
      used_ = 0;
    }
    std::uint64_t value = buffer_[used_];
    buffer_[used_++] = 0;
    return value;
  }

 private:
  // The kernel delivers up to 256 bytes in one piece.
  static constexpr std::size_t kBuffered = 32;
  std::mutex mutex_;
  std::uint64_t buffer_[kBuffered] = {};
  std::size_t used_ = kBuffered;
};

}  // namespace

std::uint64_t Random::Below(std::uint64_t bound) {
  CHECK(bound != 0);
  // Rejecting the tail keeps the distribution uniform; it almost never loops.
  const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  std::uint64_t value = Next();
  while (value >= limit) value = Next();
  return value % bound;
}

double Random::Fraction() {
  return static_cast<double>(Next() >> 11) * 0x1.0p-53;
}

std::string Random::NameSuffix(std::size_t length) {
  static constexpr char kAlphabet[] = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix(length, ' ');
  for (char& c : suffix) c = kAlphabet[Below(sizeof(kAlphabet) - 1)];
  return suffix;
}

Random& RealRandom() {
  static KernelRandom random;
  return random;
}

SeededRandom::SeededRandom(std::uint64_t seed) {
  // splitmix64 spreads a small seed over the whole state.
  for (std::uint64_t& word : state_) {
    seed += 0x9e3779b97f4a7c15;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    word = z ^ (z >> 31);
  }
}

std::uint64_t SeededRandom::Next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

}  // namespace drakkar
