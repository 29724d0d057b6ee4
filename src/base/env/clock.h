#pragma once

#include <chrono>
#include <cstdint>

namespace drakkar {

using Duration = std::chrono::nanoseconds;
// Wall time, for timestamps in objects. It may jump.
using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;
// Monotonic time, for timeouts and measurements.
using MonotonicTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// The only access to time. Logic takes it by reference; tests pass a FakeClock or the clock of a
// SeededLoop.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime Now() const = 0;
  virtual MonotonicTime Monotonic() const = 0;
};

// The machine's clocks. Stateless and thread-safe.
const Clock& RealClock();

}  // namespace drakkar
