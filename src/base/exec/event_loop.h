#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "base/env/clock.h"

namespace drakkar {

using Task = absl::AnyInvocable<void()>;

// Destroying the handle (or calling Cancel) guarantees that the task will not run afterwards.
// Must be destroyed on the loop it belongs to.
class [[nodiscard]] Timer {
 public:
  virtual ~Timer() = default;
};
using TimerHandle = std::unique_ptr<Timer>;

// One thread of execution. All state of a component belongs to one loop; other threads reach it by
// Post. Real (UvLoop) or simulated (SeededLoop, all components on one seed).
class EventLoop {
 public:
  virtual ~EventLoop() = default;

  // Runs `task` on the loop, in the order posted. Thread-safe. A task posted after the loop has
  // stopped for the last time is destroyed with the loop, without running.
  virtual void Post(Task task) = 0;
  // Like Post, for tasks that start new work (a request from outside). They may be delayed until
  // earlier work is finished, by a bounded number of tasks. They keep their order among themselves.
  virtual void PostNew(Task task) { Post(std::move(task)); }

  // Runs `task` once after `delay` unless the handle is destroyed first. Call it on the loop.
  virtual TimerHandle RunAfter(Duration delay, Task task) = 0;

  // True on the loop's own thread; always true in a simulation.
  virtual bool IsInLoop() const = 0;

  virtual const Clock& clock() const = 0;

  // Aborts if called from another thread; free in release builds.
  void AssertInLoop() const {
#ifndef NDEBUG
    CheckInLoop();
#endif
  }

 private:
  void CheckInLoop() const;
};

}  // namespace drakkar
