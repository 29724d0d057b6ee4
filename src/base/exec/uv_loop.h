#pragma once

#include <memory>
#include <string>

#include "base/exec/event_loop.h"
#include "base/result/result.h"

struct uv_loop_s;

namespace drakkar {

// The real loop: libuv underneath. Run it on the current thread with Run, or on a thread of its own
// with LoopThread. `native` is for base, net/socket and node file watching only.
class UvLoop final : public EventLoop {
 public:
  UvLoop();
  ~UvLoop() override;

  void Post(Task task) override;
  void PostNew(Task task) override;
  TimerHandle RunAfter(Duration delay, Task task) override;
  bool IsInLoop() const override;
  const Clock& clock() const override;

  // Runs until Stop. Tasks posted before Stop have run. May be called again afterwards.
  void Run();
  // From any thread.
  void Stop();

  // Calls `on_signal` on the loop when the process gets the signal. Only from the loop or before
  // Run. The handle stops the watching.
  TimerHandle OnSignal(int signal, std::function<void()> on_signal);

  uv_loop_s* native();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A UvLoop on a thread of its own, started by the constructor. The destructor stops and joins.
// What lives on the loop must be destroyed on it first (RunSync).
class LoopThread {
 public:
  explicit LoopThread(std::string name);
  ~LoopThread();
  UvLoop& loop() { return *loop_; }
  // Runs `task` on the loop and waits for it. Never call it from the loop.
  void RunSync(Task task);
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<UvLoop> loop_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drakkar
