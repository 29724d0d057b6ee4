#include "node/checkpoint/blocking_work.h"

#include "base/exec/lifetime.h"
#include "base/exec/worker_pool.h"

namespace drakkar::node {
namespace {

class PooledWork final : public BlockingWork {
 public:
  PooledWork(EventLoop& loop, WorkerPool& pool) : loop_(loop), pool_(pool) {}

  void Run(absl::AnyInvocable<Result<void>()> work,
           absl::AnyInvocable<void(Result<void>)> done) override {
    // `done` belongs to the loop, so only the loop may run or destroy it. The worker just carries
    // the box.
    auto box = std::make_shared<absl::AnyInvocable<void(Result<void>)>>(std::move(done));
    auto answer = [&loop = loop_, box, owner = lifetime_.Observe()](Result<void> result) {
      loop.Post([box, owner, result = std::move(result)]() mutable {
        if (owner.alive()) (*box)(std::move(result));
        *box = nullptr;
      });
    };
    const bool queued = pool_.Run([answer, work = std::move(work)]() mutable { answer(work()); });
    if (!queued)
      answer(Error{ErrorCode::kResourceExhausted, "too many file operations are queued"});
  }

 private:
  EventLoop& loop_;
  WorkerPool& pool_;
  Lifetime lifetime_;
};

class LoopWork final : public BlockingWork {
 public:
  explicit LoopWork(EventLoop& loop) : loop_(loop) {}

  void Run(absl::AnyInvocable<Result<void>()> work,
           absl::AnyInvocable<void(Result<void>)> done) override {
    loop_.Post(lifetime_.Guard(
        [work = std::move(work), done = std::move(done)]() mutable { done(work()); }));
  }

 private:
  EventLoop& loop_;
  Lifetime lifetime_;
};

}  // namespace

std::unique_ptr<BlockingWork> MakePooledWork(EventLoop& loop, WorkerPool& pool) {
  return std::make_unique<PooledWork>(loop, pool);
}

std::unique_ptr<BlockingWork> MakeLoopWork(EventLoop& loop) {
  return std::make_unique<LoopWork>(loop);
}

}  // namespace drakkar::node
