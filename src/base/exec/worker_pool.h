#pragma once

#include <cstddef>
#include <memory>

#include "base/exec/event_loop.h"

namespace drakkar {

// A few threads for blocking work: fsync, spawn, large reads. Bounded: Run returns false if
// `max_queued` tasks are already queued, and the caller decides what to drop.
class WorkerPool {
 public:
  WorkerPool(std::size_t threads, std::size_t max_queued);
  ~WorkerPool();  // calls Stop

  [[nodiscard]] bool Run(Task task);
  // Finishes the queued tasks and joins the threads; Run returns false from then on. Call it before
  // anything that the tasks use is destroyed.
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drakkar
