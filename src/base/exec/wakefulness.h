#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/exec/event_loop.h"

namespace drakkar {

// Keeps the machine's idle processors from sleeping while somebody waits for something short that
// goes from thread to thread. Waking a sleeping processor takes longer than most of such steps, and
// a virtual one has to wait until its host finds time for it again. Idle processors poll instead,
// which costs power and nobody's time; so a hold is for a few milliseconds. The loop's own thread
// can be made urgent meanwhile.
//
// By the kernel's /dev/cpu_dma_latency. Without it, or without the right to use it, nothing
// changes. Loop-bound. Holds may outlive it.
class Wakefulness {
 public:
  // A hold that lasts longer ends by itself.
  static constexpr Duration kLimit = std::chrono::milliseconds(5);
  static constexpr char kDevice[] = "/dev/cpu_dma_latency";

  // Urgent: Preference::kNow while there is a hold, kSoon otherwise.
  enum class LoopThread { kAsItIs, kUrgent };

  // Without a `device` processors may sleep.
  explicit Wakefulness(EventLoop& loop, const std::string& device = kDevice,
                       LoopThread thread = LoopThread::kAsItIs);
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
