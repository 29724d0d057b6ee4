#include "base/env/clock.h"

namespace drakkar {
namespace {

class MachineClock final : public Clock {
 public:
  WallTime Now() const override {
    return std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now());
  }
  MonotonicTime Monotonic() const override {
    return std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now());
  }
};

}  // namespace

const Clock& RealClock() {
  static const MachineClock clock;
  return clock;
}

}  // namespace drakkar
