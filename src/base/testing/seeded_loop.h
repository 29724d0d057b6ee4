#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/env/clock.h"
#include "base/env/random.h"
#include "base/exec/event_loop.h"

namespace drakkar {

// A clock that moves only when told to. Wall and monotonic time advance together; wall time can
// jump.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(WallTime start = WallTime(std::chrono::seconds(1'800'000'000)));
  WallTime Now() const override { return wall_; }
  MonotonicTime Monotonic() const override { return monotonic_; }
  void Advance(Duration by);
  void JumpWall(Duration by) { wall_ += by; }

 private:
  WallTime wall_;
  MonotonicTime monotonic_{};
};

// A loop without threads or real time: tasks run when the test says so, and timers fire as the fake
// clock advances. Everything on it is a function of the seed.
//
// Components that would have their own loops get lanes, each of which keeps the order in which
// tasks were posted to it. With `shuffle`, the seed decides which lane runs next (and whether a due
// timer runs first), so that components interleave in every possible way. Without it, everything
// runs in the order posted.
class SeededLoop final : public EventLoop {
 public:
  explicit SeededLoop(std::uint64_t seed = 1, bool shuffle = false);
  ~SeededLoop() override;

  // A loop with the same clock, timers and seed, but its own order. Lives as long as this one.
  EventLoop& NewLane();
  // Simulates a crash of the lane's component: destroys tasks queued on it, now and later.
  void DropLane(EventLoop& lane);

  void Post(Task task) override;
  TimerHandle RunAfter(Duration delay, Task task) override;
  bool IsInLoop() const override { return true; }
  const Clock& clock() const override { return clock_; }

  FakeClock& fake_clock() { return clock_; }
  Random& random() { return random_; }

  // Runs one ready task (with `shuffle`, possibly a due timer); false if none is ready.
  bool RunOne();
  // Runs until nothing is ready and returns how many tasks ran. Aborts after `limit`, because a
  // loop that feeds itself without time passing is a bug.
  std::size_t RunUntilIdle(std::size_t limit = 10'000'000);
  // Advances time by `by`, firing timers in order and running what becomes ready.
  void Advance(Duration by);
  // Advances to the next timer, if there is one within `limit`, and runs until idle.
  bool AdvanceToNextTimer(Duration limit);
  std::size_t pending_timers() const { return timers_.size(); }

 private:
  friend class SeededTimer;
  class Lane;
  using TimerKey = std::pair<MonotonicTime, std::uint64_t>;
  bool RunShuffled();

  FakeClock clock_;
  SeededRandom random_;
  bool shuffle_;
  std::vector<Task> ready_;
  std::size_t next_ready_ = 0;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::map<TimerKey, Task> timers_;
  std::uint64_t next_timer_id_ = 0;
};

}  // namespace drakkar
