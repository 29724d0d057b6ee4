#include "base/testing/seeded_loop.h"

#include <algorithm>
#include <deque>

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
    // Move it out first: destroying the task may destroy other timers of this loop.
    auto found = loop_->timers_.find(key_);
    if (found == loop_->timers_.end()) return;
    Task task = std::move(found->second);
    loop_->timers_.erase(found);
  }

 private:
  SeededLoop* loop_;
  SeededLoop::TimerKey key_;
};

class SeededLoop::Lane final : public EventLoop {
 public:
  explicit Lane(SeededLoop& loop) : loop_(loop) {}
  void Post(Task task) override {
    if (dropped) return;
    if (loop_.shuffle_) {
      ready.push_back(std::move(task));
    } else {
      loop_.Post(std::move(task));
    }
  }
  TimerHandle RunAfter(Duration delay, Task task) override {
    return loop_.RunAfter(delay, std::move(task));
  }
  bool IsInLoop() const override { return true; }
  const Clock& clock() const override { return loop_.clock(); }

  std::deque<Task> ready;
  bool dropped = false;

 private:
  SeededLoop& loop_;
};

EventLoop& SeededLoop::NewLane() {
  return *lanes_.emplace_back(std::make_unique<Lane>(*this));
}

void SeededLoop::DropLane(EventLoop& lane) {
  CHECK(shuffle_);  // otherwise its tasks are mixed with all others
  for (const auto& each : lanes_) {
    if (each.get() != &lane) continue;
    each->dropped = true;
    const std::deque<Task> tasks = std::exchange(each->ready, {});
  }
}

SeededLoop::SeededLoop(std::uint64_t seed, bool shuffle) : random_(seed), shuffle_(shuffle) {}

SeededLoop::~SeededLoop() {
  // Destroying a task may post or cancel others, so repeat until nothing is left.
  const auto any_lane = [this] {
    return std::any_of(lanes_.begin(), lanes_.end(),
                       [](const auto& lane) { return !lane->ready.empty(); });
  };
  while (!ready_.empty() || !timers_.empty() || any_lane()) {
    std::vector<std::deque<Task>> lanes;
    for (const auto& lane : lanes_) lanes.push_back(std::move(lane->ready));
    for (const auto& lane : lanes_) lane->ready.clear();
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

bool SeededLoop::RunShuffled() {
  // Lane 0 is the loop itself.
  std::size_t ways = next_ready_ < ready_.size() ? 1 : 0;
  const bool due = !timers_.empty() && timers_.begin()->first.first <= clock_.Monotonic();
  for (const auto& lane : lanes_) ways += lane->ready.empty() ? 0 : 1;
  ways += due ? 1 : 0;
  if (ways == 0) return false;
  std::size_t chosen = random_.Below(ways);
  Task task;
  if (due && chosen-- == 0) {
    task = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
  } else if (next_ready_ < ready_.size() && chosen-- == 0) {
    task = std::move(ready_[next_ready_++]);
    if (next_ready_ == ready_.size()) {
      ready_.clear();
      next_ready_ = 0;
    }
  } else {
    for (const auto& lane : lanes_) {
      if (lane->ready.empty() || chosen-- != 0) continue;
      task = std::move(lane->ready.front());
      lane->ready.pop_front();
      break;
    }
  }
  task();
  return true;
}

bool SeededLoop::RunOne() {
  if (shuffle_) return RunShuffled();
  if (next_ready_ == ready_.size()) {
    ready_.clear();
    next_ready_ = 0;
    return false;
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
