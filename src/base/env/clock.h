#pragma once

#include <chrono>
#include <cstdint>

namespace drakkar {

using Duration = std::chrono::nanoseconds;
// Wall time, for what is written into objects. It may jump.
using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;
// Time that only moves forward, for timeouts and measurements.
using MonotonicTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// The only door to time. Logic takes it by reference; tests pass a FakeClock or the clock of a
// SeededLoop.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime Now() const = 0;
  virtual MonotonicTime Monotonic() const = 0;
};

// The machine's clocks. Stateless and usable from any thread.
const Clock& RealClock();

}  // namespace drakkar
