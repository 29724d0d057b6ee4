#include "base/exec/uv_loop.h"

#include <pthread.h>
#include <uv.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result/check.h"

namespace drakkar {

void EventLoop::CheckInLoop() const {
  CHECK(IsInLoop());
}

struct UvLoop::Impl {
  uv_loop_t loop;
  uv_async_t wake;
  std::mutex mutex;
  std::vector<Task> posted;   // guarded by mutex
  bool stopping = false;      // guarded by mutex
  bool stopped = false;       // guarded by mutex
  std::atomic<std::thread::id> thread{};

  static void OnWake(uv_async_t* handle) {
    auto* self = static_cast<Impl*>(handle->data);
    std::vector<Task> tasks;
    bool stop = false;
    {
      std::lock_guard lock(self->mutex);
      tasks.swap(self->posted);
      stop = self->stopping;
    }
    for (Task& task : tasks) {
      task();
      task = nullptr;
    }
    if (stop) uv_stop(&self->loop);
  }
};

namespace {

// A libuv handle is freed only after its close callback, so the C++ handle owns a heap node that
// outlives it by one loop iteration.
struct UvTimerNode {
  uv_timer_t timer;
  Task task;
  bool active = true;

  static void OnFire(uv_timer_t* handle) {
    auto* node = static_cast<UvTimerNode*>(handle->data);
    // The task may destroy its own handle; keep it alive until it returns.
    Task task = std::move(node->task);
    task();
  }
  static void OnClose(uv_handle_t* handle) { delete static_cast<UvTimerNode*>(handle->data); }
};

class UvTimerHandle final : public Timer {
 public:
  explicit UvTimerHandle(UvTimerNode* node) : node_(node) {}
  ~UvTimerHandle() override {
    node_->task = nullptr;
    uv_close(reinterpret_cast<uv_handle_t*>(&node_->timer), &UvTimerNode::OnClose);
  }

 private:
  UvTimerNode* node_;
};

struct UvSignalNode {
  uv_signal_t signal;
  std::function<void()> on_signal;
  static void OnFire(uv_signal_t* handle, int) {
    static_cast<UvSignalNode*>(handle->data)->on_signal();
  }
  static void OnClose(uv_handle_t* handle) { delete static_cast<UvSignalNode*>(handle->data); }
};

class UvSignalHandle final : public Timer {
 public:
  explicit UvSignalHandle(UvSignalNode* node) : node_(node) {}
  ~UvSignalHandle() override {
    uv_close(reinterpret_cast<uv_handle_t*>(&node_->signal), &UvSignalNode::OnClose);
  }

 private:
  UvSignalNode* node_;
};

}  // namespace

UvLoop::UvLoop() : impl_(std::make_unique<Impl>()) {
  CHECK(uv_loop_init(&impl_->loop) == 0);
  CHECK(uv_async_init(&impl_->loop, &impl_->wake, &Impl::OnWake) == 0);
  impl_->wake.data = impl_.get();
}

UvLoop::~UvLoop() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopped = true;
  }
  std::vector<Task> dropped;
  {
    std::lock_guard lock(impl_->mutex);
    dropped.swap(impl_->posted);
  }
  // Destroying a task may destroy handles that live on this loop: we are the last user, so this
  // thread counts as the loop's.
  impl_->thread = std::this_thread::get_id();
  dropped.clear();
  uv_close(reinterpret_cast<uv_handle_t*>(&impl_->wake), nullptr);
  uv_run(&impl_->loop, UV_RUN_DEFAULT);
  CHECK(uv_loop_close(&impl_->loop) == 0);
}

void UvLoop::Post(Task task) {
  {
    std::lock_guard lock(impl_->mutex);
    if (!impl_->stopped) {
      impl_->posted.push_back(std::move(task));
      if (impl_->posted.size() > 1) return;  // a wake-up is already on its way
    }
  }
  uv_async_send(&impl_->wake);
}

TimerHandle UvLoop::RunAfter(Duration delay, Task task) {
  AssertInLoop();
  auto* node = new UvTimerNode;
  node->task = std::move(task);
  CHECK(uv_timer_init(&impl_->loop, &node->timer) == 0);
  node->timer.data = node;
  // Round up: firing early would make a deadline check see time left and arm again at once.
  const std::int64_t ns = std::max<std::int64_t>(delay.count(), 0);
  uv_update_time(&impl_->loop);
  uv_timer_start(&node->timer, &UvTimerNode::OnFire,
                 static_cast<std::uint64_t>((ns + 999'999) / 1'000'000), 0);
  return std::make_unique<UvTimerHandle>(node);
}

bool UvLoop::IsInLoop() const {
  const std::thread::id owner = impl_->thread.load();
  return owner == std::thread::id() || owner == std::this_thread::get_id();
}

const Clock& UvLoop::clock() const {
  return RealClock();
}

void UvLoop::Run() {
  impl_->thread = std::this_thread::get_id();
  uv_run(&impl_->loop, UV_RUN_DEFAULT);
  std::vector<Task> rest;
  {
    std::lock_guard lock(impl_->mutex);
    rest.swap(impl_->posted);
    // It may be run again; what is posted until then, or never run, waits for that or for the end.
    impl_->stopping = false;
  }
  for (Task& task : rest) {
    task();
    task = nullptr;
  }
  impl_->thread = std::thread::id();
}

void UvLoop::Stop() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  uv_async_send(&impl_->wake);
}

TimerHandle UvLoop::OnSignal(int signal, std::function<void()> on_signal) {
  auto* node = new UvSignalNode;
  node->on_signal = std::move(on_signal);
  CHECK(uv_signal_init(&impl_->loop, &node->signal) == 0);
  node->signal.data = node;
  CHECK(uv_signal_start(&node->signal, &UvSignalNode::OnFire, signal) == 0);
  return std::make_unique<UvSignalHandle>(node);
}

uv_loop_s* UvLoop::native() {
  return &impl_->loop;
}

struct LoopThread::Impl {
  std::thread thread;
};

LoopThread::LoopThread(std::string name)
    : loop_(std::make_unique<UvLoop>()), impl_(std::make_unique<Impl>()) {
  impl_->thread = std::thread([this, name = name.substr(0, 15)] {
    pthread_setname_np(pthread_self(), name.c_str());
    loop_->Run();
  });
}

LoopThread::~LoopThread() {
  Stop();
}

void LoopThread::RunSync(Task task) {
  CHECK(std::this_thread::get_id() != impl_->thread.get_id());
  std::mutex mutex;
  std::condition_variable done_changed;
  bool done = false;
  loop_->Post([&] {
    task();
    task = nullptr;
    // Notify under the lock: the waiter owns these objects and returns as soon as it sees done.
    std::lock_guard lock(mutex);
    done = true;
    done_changed.notify_one();
  });
  std::unique_lock lock(mutex);
  done_changed.wait(lock, [&] { return done; });
}

void LoopThread::Stop() {
  if (!impl_->thread.joinable()) return;
  loop_->Stop();
  impl_->thread.join();
}

}  // namespace drakkar
