#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/exec/event_loop.h"

namespace drakkar {

// Keeps the machine's idle processors from sleeping while short work passes from thread to thread,
// where waking a processor would take longer than the work. Idle processors poll instead, which
// costs power and, on a virtual machine, its neighbours' time: only on request (--low-latency).
//
// Uses the kernel's /dev/cpu_dma_latency. Without it, or without the right to open it, nothing
// changes. Loop-bound. Holds may outlive it.
class Wakefulness {
 public:
  // A hold that lasts longer ends by itself.
  static constexpr Duration kLimit = std::chrono::milliseconds(5);
  static constexpr char kDevice[] = "/dev/cpu_dma_latency";

  explicit Wakefulness(EventLoop& loop, const std::string& device = kDevice);
  ~Wakefulness();

  class Hold;
  // Until the hold is destroyed.
  [[nodiscard]] std::unique_ptr<Hold> Begin();

  // Until nobody has called it for kLinger: for streams of short things, where a hold for each
  // would cost more than it gives.
  static constexpr Duration kLinger = std::chrono::milliseconds(1);
  void Touch();

 private:
  struct State;
  void Linger(Duration more);

  const std::shared_ptr<State> state_;
  MonotonicTime touched_{};
  TimerHandle linger_;  // null unless touched of late
};

class Wakefulness::Hold {
 public:
  explicit Hold(std::shared_ptr<State> state);
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  void End();

  const std::shared_ptr<State> state_;
  TimerHandle limit_;  // null once it is over
};

}  // namespace drakkar
