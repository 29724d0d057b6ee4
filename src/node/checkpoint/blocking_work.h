#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"
#include "base/exec/event_loop.h"
#include "base/result/result.h"

namespace drakkar {
class WorkerPool;
}

namespace drakkar::node {

// Runs file operations that sync, so that the node's loop never waits for a disk. Loop-bound.
class BlockingWork {
 public:
  virtual ~BlockingWork() = default;
  // Runs `work` (on any thread), then `done` on the loop with its result, never inside the call.
  // No `done` runs after this object is destroyed.
  virtual void Run(absl::AnyInvocable<Result<void>()> work,
                   absl::AnyInvocable<void(Result<void>)> done) = 0;
};

// Runs on the pool's threads. A full pool answers kResourceExhausted. `pool` must outlive it.
std::unique_ptr<BlockingWork> MakePooledWork(EventLoop& loop, WorkerPool& pool);
// Runs as a task on the loop: for simulation, where files are in memory.
std::unique_ptr<BlockingWork> MakeLoopWork(EventLoop& loop);

}  // namespace drakkar::node
