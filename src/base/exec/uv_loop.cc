#include "base/exec/uv_loop.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/env/descriptor.h"
#include "base/exec/processors.h"
#include "base/result/check.h"

namespace drakkar {

void EventLoop::CheckInLoop() const {
  CHECK(IsInLoop());
}

namespace {

// A wake-up costs both sides a system call and often a context switch. A loop's thread therefore
// wakes the other loops it has posted to only when it is about to wait, after this many of its own
// tasks, or when this many tasks are queued at the other loop.
constexpr std::size_t kTasksPerWake = 16;
// How many times in a row a loop runs tasks that its tasks posted to itself before it polls its
// sockets.
constexpr int kRoundsPerTurn = 8;
// How many new pieces of work a loop starts at a time: when nothing else is queued, or after
// kTasksPerWake other tasks. Requests from outside come in bursts. Started all at once, they would
// go through their steps together, and the next component would be idle in the meantime.
constexpr std::size_t kNewAtATime = 4;

// Wakes a loop, which may have been destroyed. Not a uv_async_t: the woken thread often preempts
// the waker, and libuv then spins until the waker returns from its call.
class Waker {
 public:
  Waker() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) { CHECK(event_.ok()); }
  void Wake() {
    if (on_its_way_.exchange(true)) return;
    const std::uint64_t one = 1;
    CHECK(::write(event_.get(), &one, sizeof one) == sizeof one);
  }
  // The loop calls it before it looks for work.
  void Arrived() {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t taken = ::read(event_.get(), &count, sizeof count);
    on_its_way_ = false;
  }
  int descriptor() const { return event_.get(); }

 private:
  const Descriptor event_;
  std::atomic<bool> on_its_way_{false};
};

// The loops that this thread has posted to but not woken yet; null on threads that run no loop,
// which wake immediately.
thread_local std::vector<std::shared_ptr<Waker>>* to_wake = nullptr;

void WakeOthers() {
  if (to_wake == nullptr) return;
  for (const std::shared_ptr<Waker>& waker : *to_wake) waker->Wake();
  to_wake->clear();
}

}  // namespace

struct UvLoop::Impl {
  uv_loop_t loop;
  uv_poll_t wake;
  uv_prepare_t before_wait;
  const std::shared_ptr<Waker> waker = std::make_shared<Waker>();
  std::mutex mutex;
  std::vector<Task> posted;        // guarded by mutex
  std::deque<Task> fresh;          // guarded by mutex; from PostNew
  bool stopping = false;           // guarded by mutex
  bool stopped = false;            // guarded by mutex
  bool in_turn = false;            // guarded by mutex; OnWake will check `posted` again
  std::size_t run_since_wake = 0;  // tasks, up to kTasksPerWake
  std::atomic<std::thread::id> thread{};

  static void OnWake(uv_poll_t* handle, int, int) {
    auto* self = static_cast<Impl*>(handle->data);
    self->waker->Arrived();
    for (int round = 1; true; ++round) {
      std::vector<Task> tasks;
      bool stop = false;
      bool are_new = false;  // these tasks are from PostNew; more of them may follow
      {
        std::lock_guard lock(self->mutex);
        tasks.swap(self->posted);
        stop = self->stopping;
        are_new = tasks.empty() || stop;
        if (are_new) self->TakeNew(stop ? SIZE_MAX : kNewAtATime, tasks);
        // In the last round, later tasks need a wake-up.
        self->in_turn = round < kRoundsPerTurn && !tasks.empty() && !stop;
      }
      for (Task& task : tasks) {
        task();
        task = nullptr;
        if (++self->run_since_wake < kTasksPerWake) continue;
        self->run_since_wake = 0;
        WakeOthers();
        if (!are_new) self->BeginSome();
      }
      if (stop) uv_stop(&self->loop);
      if (stop || tasks.empty()) return;
      if (round < kRoundsPerTurn) continue;
      std::lock_guard lock(self->mutex);
      if (!self->fresh.empty()) self->waker->Wake();
      return;
    }
  }

  // Requires `mutex`.
  void TakeNew(std::size_t at_most, std::vector<Task>& tasks) {
    for (; at_most > 0 && !fresh.empty(); --at_most) {
      tasks.push_back(std::move(fresh.front()));
      fresh.pop_front();
    }
  }

  // Gives new work its share, however much else is queued.
  void BeginSome() {
    std::vector<Task> tasks;
    {
      std::lock_guard lock(mutex);
      TakeNew(kNewAtATime, tasks);
    }
    for (Task& task : tasks) {
      task();
      task = nullptr;
    }
  }

  template <typename Queue>
  void Add(Queue& queue, Task task) {
    std::size_t waiting = 0;
    {
      std::lock_guard lock(mutex);
      if (stopped) return;  // the task is destroyed outside the lock
      queue.push_back(std::move(task));
      if (in_turn) return;
      waiting = queue.size();
    }
    if (to_wake == nullptr || waiting == kTasksPerWake) {
      waker->Wake();
    } else if (std::find(to_wake->begin(), to_wake->end(), waker) == to_wake->end()) {
      // Even if another thread is about to wake it: that thread may be busy with a long task.
      to_wake->push_back(waker);
    }
  }

  static void BeforeWait(uv_prepare_t*) { WakeOthers(); }
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
    // The task may destroy its own handle, so keep it alive until it returns.
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
  CHECK(uv_poll_init(&impl_->loop, &impl_->wake, impl_->waker->descriptor()) == 0);
  impl_->wake.data = impl_.get();
  CHECK(uv_poll_start(&impl_->wake, UV_READABLE, &Impl::OnWake) == 0);
  // Started before all other prepare handles: libuv runs the latest first, so this one runs last
  // before the loop waits and sees what the others posted.
  CHECK(uv_prepare_init(&impl_->loop, &impl_->before_wait) == 0);
  CHECK(uv_prepare_start(&impl_->before_wait, &Impl::BeforeWait) == 0);
  uv_unref(reinterpret_cast<uv_handle_t*>(&impl_->before_wait));
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
    impl_->TakeNew(SIZE_MAX, dropped);
  }
  // Destroying a task may destroy handles that live on this loop. We are the last user, so this
  // thread counts as the loop's.
  impl_->thread = std::this_thread::get_id();
  dropped.clear();
  uv_close(reinterpret_cast<uv_handle_t*>(&impl_->before_wait), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&impl_->wake), nullptr);
  uv_run(&impl_->loop, UV_RUN_DEFAULT);
  CHECK(uv_loop_close(&impl_->loop) == 0);
}

void UvLoop::Post(Task task) {
  impl_->Add(impl_->posted, std::move(task));
}

void UvLoop::PostNew(Task task) {
  impl_->Add(impl_->fresh, std::move(task));
}

TimerHandle UvLoop::RunAfter(Duration delay, Task task) {
  AssertInLoop();
  auto* node = new UvTimerNode;
  node->task = std::move(task);
  CHECK(uv_timer_init(&impl_->loop, &node->timer) == 0);
  node->timer.data = node;
  // Round up: if a timer fired early, a deadline check would see time left and re-arm immediately.
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
  std::vector<std::shared_ptr<Waker>> others;
  std::vector<std::shared_ptr<Waker>>* const outer = std::exchange(to_wake, &others);
  uv_run(&impl_->loop, UV_RUN_DEFAULT);
  WakeOthers();
  to_wake = outer;
  std::vector<Task> rest;
  {
    std::lock_guard lock(impl_->mutex);
    rest.swap(impl_->posted);
    impl_->TakeNew(SIZE_MAX, rest);
    // The loop may run again. Tasks posted until then wait for that run, or for the end.
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
  impl_->waker->Wake();
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

std::size_t ProcessorCount() {
  return std::max<std::size_t>(uv_available_parallelism(), 1);
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
  WakeOthers();
  std::unique_lock lock(mutex);
  done_changed.wait(lock, [&] { return done; });
}

void LoopThread::Stop() {
  if (!impl_->thread.joinable()) return;
  WakeOthers();
  loop_->Stop();
  impl_->thread.join();
}

}  // namespace drakkar
