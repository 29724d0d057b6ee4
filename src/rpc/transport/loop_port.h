#pragma once

#include <mutex>

#include "base/exec/event_loop.h"

namespace drakkar::rpc {

// The way from gRPC's threads to a loop that may go away first. Posting after Close drops the task.
// Closing on the loop, together with a flag that tasks check, gives "no callback after destruction".
class LoopPort {
 public:
  explicit LoopPort(EventLoop& loop) : loop_(&loop) {}

  // From any thread.
  void Post(Task task);
  void Close();

 private:
  std::mutex mutex_;
  EventLoop* loop_;  // guarded by mutex_; null once closed
};

}  // namespace drakkar::rpc
