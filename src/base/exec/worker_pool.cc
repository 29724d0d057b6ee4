#include "base/exec/worker_pool.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace drakkar {

struct WorkerPool::Impl {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Task> tasks;  // guarded by mutex
  bool stopping = false;   // guarded by mutex
  std::size_t max_queued = 0;
  std::vector<std::thread> threads;

  void Work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return stopping || !tasks.empty(); });
      if (tasks.empty()) return;
      Task task = std::move(tasks.front());
      tasks.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
    }
  }
};

WorkerPool::WorkerPool(std::size_t threads, std::size_t max_queued)
    : impl_(std::make_unique<Impl>()) {
  impl_->max_queued = max_queued;
  for (std::size_t i = 0; i < threads; ++i) {
    impl_->threads.emplace_back([impl = impl_.get()] { impl->Work(); });
  }
}

WorkerPool::~WorkerPool() {
  Stop();
}

void WorkerPool::Stop() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->changed.notify_all();
  for (std::thread& thread : impl_->threads) thread.join();
  impl_->threads.clear();
}

bool WorkerPool::Run(Task task) {
  {
    std::lock_guard lock(impl_->mutex);
    if (impl_->stopping || impl_->tasks.size() >= impl_->max_queued) return false;
    impl_->tasks.push_back(std::move(task));
  }
  impl_->changed.notify_one();
  return true;
}

}  // namespace drakkar
