#include "base/exec/wakefulness.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "base/env/descriptor.h"

namespace drakkar {
namespace {

// The wake-up latency in microseconds, in the device's format.
constexpr std::int32_t kAwake = 0;
constexpr std::int32_t kAnyTime = 2'000'000'000;

}  // namespace

struct Wakefulness::State {
  void Add() {
    if (holds++ == 0) Ask(kAwake);
  }
  void Remove() {
    if (--holds == 0) Ask(kAnyTime);
  }

  State(EventLoop& its_loop, const std::string& path)
      : loop(its_loop), device(::open(path.c_str(), O_WRONLY | O_CLOEXEC)) {}

  void Ask(std::int32_t microseconds) const {
    if (!device.ok()) return;
    // Best effort: failure only affects latency.
    [[maybe_unused]] const ssize_t written =
        ::pwrite(device.get(), &microseconds, sizeof microseconds, 0);
  }

  EventLoop& loop;
  const Descriptor device;
  int holds = 0;
};

Wakefulness::Wakefulness(EventLoop& loop, const std::string& device)
    : state_(std::make_shared<State>(loop, device)) {}

Wakefulness::~Wakefulness() {
  if (linger_ != nullptr) state_->Remove();
}

void Wakefulness::Touch() {
  touched_ = state_->loop.clock().Monotonic();
  if (linger_ != nullptr) return;
  state_->Add();
  Linger(kLinger);
}

void Wakefulness::Linger(Duration more) {
  linger_ = state_->loop.RunAfter(more, [this] {
    const Duration idle = state_->loop.clock().Monotonic() - touched_;
    if (idle < kLinger) return Linger(kLinger - idle);
    linger_ = nullptr;
    state_->Remove();
  });
}

std::unique_ptr<Wakefulness::Hold> Wakefulness::Begin() {
  return std::make_unique<Hold>(state_);
}

Wakefulness::Hold::Hold(std::shared_ptr<State> state)
    : state_(std::move(state)), limit_(state_->loop.RunAfter(kLimit, [this] { End(); })) {
  state_->Add();
}

Wakefulness::Hold::~Hold() {
  if (limit_ != nullptr) End();
}

void Wakefulness::Hold::End() {
  limit_ = nullptr;
  state_->Remove();
}

}  // namespace drakkar
