#pragma once

#include <cstddef>
#include <memory>

#include "base/exec/event_loop.h"

namespace drakkar {

// A few threads for what must block: fsync, spawn, large reads. Bounded: Run refuses (returns
// false) when `max_queued` tasks already wait, and the caller decides what to drop.
class WorkerPool {
 public:
  WorkerPool(std::size_t threads, std::size_t max_queued);
  ~WorkerPool();  // as Stop

  [[nodiscard]] bool Run(Task task);
  // Finishes the queued tasks and joins; from then on Run refuses. Whoever owns the pool and what
  // its tasks use calls this before anything of that is destroyed.
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drakkar
