#include "rpc/testing/transport_harness.h"

#include <cstdlib>
#include <future>
#include <utility>

#include "base/env/file_system.h"
#include "base/exec/uv_loop.h"
#include "base/result/check.h"
#include "base/testing/seeded_loop.h"
#include "rpc/testing/memory_transport.h"

namespace drakkar::rpc {
namespace {

constexpr Duration kWaitLimit = std::chrono::seconds(20);
constexpr Duration kWaitStep = std::chrono::milliseconds(1);

class GrpcHarness final : public TransportHarness {
 public:
  GrpcHarness() : thread_("rpc-test") {
    char pattern[] = "/tmp/drakkar-rpc-XXXXXX";
    CHECK(mkdtemp(pattern) != nullptr);
    directory_ = pattern;
    thread_.RunSync([this] { transport_ = MakeGrpcTransport(thread_.loop()); });
  }
  ~GrpcHarness() override {
    thread_.RunSync([this] { transport_.reset(); });
    static_cast<void>(RealFileSystem().RemoveTree(directory_));
  }

  EventLoop& loop() override { return thread_.loop(); }
  Transport& transport() override { return *transport_; }
  void Do(Task task) override { thread_.RunSync(std::move(task)); }
  std::string SocketPath(std::string_view name) const override {
    return JoinPath(directory_, name);
  }

  bool WaitUntil(std::function<bool()> condition) override {
    std::promise<bool> promise;
    std::future<bool> result = promise.get_future();
    const MonotonicTime limit = RealClock().Monotonic() + kWaitLimit;
    TimerHandle timer;
    std::function<void()> check = [&] {
      if (condition()) return promise.set_value(true);
      if (RealClock().Monotonic() > limit) return promise.set_value(false);
      timer = thread_.loop().RunAfter(kWaitStep, [&] { check(); });
    };
    thread_.loop().Post([&] { check(); });
    const bool held = result.get();
    thread_.RunSync([&] { timer.reset(); });
    return held;
  }

 private:
  LoopThread thread_;
  std::string directory_;
  std::unique_ptr<Transport> transport_;
};

class MemoryHarness final : public TransportHarness {
 public:
  MemoryHarness() : transport_(loop_) {}

  EventLoop& loop() override { return loop_; }
  Transport& transport() override { return transport_; }
  void Do(Task task) override { task(); }
  std::string SocketPath(std::string_view name) const override {
    return JoinPath("/sockets", name);
  }

  bool WaitUntil(std::function<bool()> condition) override {
    const MonotonicTime limit = loop_.clock().Monotonic() + kWaitLimit;
    while (true) {
      if (condition()) return true;
      if (loop_.RunOne()) continue;
      if (loop_.clock().Monotonic() > limit || !loop_.AdvanceToNextTimer(kWaitLimit)) {
        return condition();
      }
    }
  }

 private:
  SeededLoop loop_;
  MemoryTransport transport_;
};

}  // namespace

std::unique_ptr<TransportHarness> MakeGrpcHarness() {
  return std::make_unique<GrpcHarness>();
}

std::unique_ptr<TransportHarness> MakeMemoryHarness() {
  return std::make_unique<MemoryHarness>();
}

}  // namespace drakkar::rpc
