#include "base/testing/seeded_loop.h"

#include "base/result/check.h"

namespace drakkar {

FakeClock::FakeClock(WallTime start) : wall_(start) {}

void FakeClock::Advance(Duration by) {
  CHECK(by.count() >= 0);
  wall_ += by;
  monotonic_ += by;
}

class SeededTimer final : public Timer {
 public:
  SeededTimer(SeededLoop* loop, SeededLoop::TimerKey key) : loop_(loop), key_(key) {}
  ~SeededTimer() override {
    // Move out first: destroying the task may destroy other timers of this loop.
    auto found = loop_->timers_.find(key_);
    if (found == loop_->timers_.end()) return;
    Task task = std::move(found->second);
    loop_->timers_.erase(found);
  }

 private:
  SeededLoop* loop_;
  SeededLoop::TimerKey key_;
};

SeededLoop::SeededLoop(std::uint64_t seed, bool shuffle) : random_(seed), shuffle_(shuffle) {}

SeededLoop::~SeededLoop() {
  // Destroying a task may post or cancel: drain until nothing is left.
  while (!ready_.empty() || !timers_.empty()) {
    std::vector<Task> ready = std::move(ready_);
    std::map<TimerKey, Task> timers = std::move(timers_);
    ready_.clear();
    timers_.clear();
    next_ready_ = 0;
  }
}

void SeededLoop::Post(Task task) {
  ready_.push_back(std::move(task));
}

TimerHandle SeededLoop::RunAfter(Duration delay, Task task) {
  TimerKey key{clock_.Monotonic() + std::max(delay, Duration::zero()), next_timer_id_++};
  timers_.emplace(key, std::move(task));
  return std::make_unique<SeededTimer>(this, key);
}

bool SeededLoop::RunOne() {
  if (next_ready_ == ready_.size()) {
    ready_.clear();
    next_ready_ = 0;
    return false;
  }
  if (shuffle_) {
    std::size_t other = next_ready_ + random_.Below(ready_.size() - next_ready_);
    std::swap(ready_[next_ready_], ready_[other]);
  }
  Task task = std::move(ready_[next_ready_++]);
  if (next_ready_ > 1024 && next_ready_ * 2 > ready_.size()) {
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(next_ready_));
    next_ready_ = 0;
  }
  task();
  return true;
}

std::size_t SeededLoop::RunUntilIdle(std::size_t limit) {
  std::size_t ran = 0;
  while (RunOne()) CHECK(++ran < limit);
  return ran;
}

void SeededLoop::Advance(Duration by) {
  const MonotonicTime end = clock_.Monotonic() + by;
  RunUntilIdle();
  while (!timers_.empty() && timers_.begin()->first.first <= end) {
    clock_.Advance(timers_.begin()->first.first - clock_.Monotonic());
    Task task = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    task();
    RunUntilIdle();
  }
  if (end > clock_.Monotonic()) clock_.Advance(end - clock_.Monotonic());
}

bool SeededLoop::AdvanceToNextTimer(Duration limit) {
  RunUntilIdle();
  if (timers_.empty()) return false;
  const Duration wait =
      std::max(timers_.begin()->first.first - clock_.Monotonic(), Duration::zero());
  if (wait > limit) return false;
  Advance(wait);
  return true;
}

}  // namespace drakkar
