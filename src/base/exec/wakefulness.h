#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/exec/event_loop.h"

namespace drakkar {

// Keeps idle processors from sleeping while short work passes from thread to thread, where waking a
// processor would take longer than the work. Idle processors poll instead, which costs power and,
// on a virtual machine, the host's CPU. Therefore only on request (--low-latency).
//
// Uses the kernel's /dev/cpu_dma_latency. Without it, or without permission to open it, this is a
// no-op. Loop-bound. Holds may outlive it.
class Wakefulness {
 public:
  // A hold that lasts longer expires.
  static constexpr Duration kLimit = std::chrono::milliseconds(5);
  static constexpr char kDevice[] = "/dev/cpu_dma_latency";

  explicit Wakefulness(EventLoop& loop, const std::string& device = kDevice);
  ~Wakefulness();

  class Hold;
  // Active until the hold is destroyed.
  [[nodiscard]] std::unique_ptr<Hold> Begin();

  // Active until nobody has called it for kLinger. For streams of short operations, where a hold
  // for each would cost more than it gains.
  static constexpr Duration kLinger = std::chrono::milliseconds(1);
  void Touch();

 private:
  struct State;
  void Linger(Duration more);

  const std::shared_ptr<State> state_;
  MonotonicTime touched_{};
  TimerHandle linger_;  // null unless touched recently
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
  TimerHandle limit_;  // null once expired
};

}  // namespace drakkar
