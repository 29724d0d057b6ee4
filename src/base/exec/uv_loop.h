#pragma once

#include <memory>
#include <string>

#include "base/exec/event_loop.h"
#include "base/result/result.h"

struct uv_loop_s;

namespace drakkar {

// The real loop, based on libuv. Run it on the current thread with Run, or on its own thread with
// LoopThread. `native` is only for base, net/socket and the node's file watching.
class UvLoop final : public EventLoop {
 public:
  UvLoop();
  ~UvLoop() override;

  void Post(Task task) override;
  void PostNew(Task task) override;
  TimerHandle RunAfter(Duration delay, Task task) override;
  bool IsInLoop() const override;
  const Clock& clock() const override;

  // Runs until Stop. Tasks posted before Stop are run. May be called again afterwards.
  void Run();
  // Thread-safe.
  void Stop();

  // Calls `on_signal` on the loop when the process receives the signal. Call it on the loop or
  // before Run. Destroying the handle stops it.
  TimerHandle OnSignal(int signal, std::function<void()> on_signal);

  uv_loop_s* native();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A UvLoop on its own thread, started by the constructor. The destructor stops and joins it.
// Objects that live on the loop must be destroyed on it first (RunSync).
class LoopThread {
 public:
  explicit LoopThread(std::string name);
  ~LoopThread();
  UvLoop& loop() { return *loop_; }
  // Runs `task` on the loop and waits for it. Must not be called on the loop.
  void RunSync(Task task);
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<UvLoop> loop_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drakkar
