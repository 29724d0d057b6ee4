#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

namespace drakkar {

// Stops callbacks from reaching an object that has been destroyed.
//
// An object that hands out callbacks which capture `this` has a Lifetime as its last member (so
// that it ends first) and guards each of them:
//
//   loop_.Post(lifetime_.Guard([this] { Run(); }));
//   client_.Get(ref, lifetime_.Guard([this, key](Reply reply) { OnReply(key, std::move(reply));
//   }));
//
// A guarded callback does nothing once the Lifetime has ended. It costs one allocation per
// Lifetime, and a pointer and a counter per callback.
//
// Loop-bound: the Lifetime ends, guarded callbacks run and observers are asked on one loop, the
// owner's. Guarded callbacks and observers may be made, copied, moved and destroyed on any thread,
// so a worker can carry one back to the loop. On another thread Observer::alive() is only a hint:
// the owner may go at any moment.
class Lifetime {
  struct State {
    std::atomic<std::uint32_t> references{1};
    std::atomic<bool> ended{false};
  };

 public:
  // Tells whether the owner still exists. For code that must act either way (answer a caller with
  // an error) or that calls out in the middle of a member function:
  //
  //   const Lifetime::Observer owner = lifetime_.Observe();
  //   callback();                  // may destroy this object
  //   if (!owner.alive()) return;
  class Observer {
   public:
    Observer(const Observer& other) noexcept : state_(other.state_) { Retain(); }
    Observer(Observer&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    Observer& operator=(Observer other) noexcept {
      std::swap(state_, other.state_);
      return *this;
    }
    ~Observer() { Release(state_); }

    // False as well for an observer that was moved from.
    bool alive() const {
      return state_ != nullptr && !state_->ended.load(std::memory_order_acquire);
    }

   private:
    friend class Lifetime;
    explicit Observer(State* state) noexcept : state_(state) { Retain(); }
    void Retain() const noexcept {
      if (state_ != nullptr) state_->references.fetch_add(1, std::memory_order_relaxed);
    }

    State* state_;
  };

  // A callback that does nothing once its owner is gone. Copyable if `Callback` is.
  template <class Callback>
  class Guarded {
   public:
    template <class... Args>
      requires std::invocable<Callback&, Args...>
    void operator()(Args&&... args) {
      Call(callback_, std::forward<Args>(args)...);
    }
    template <class... Args>
      requires std::invocable<const Callback&, Args...>
    void operator()(Args&&... args) const {
      Call(callback_, std::forward<Args>(args)...);
    }

   private:
    friend class Lifetime;
    Guarded(Observer owner, Callback callback)
        : owner_(std::move(owner)), callback_(std::move(callback)) {}

    template <class Self, class... Args>
    void Call(Self& callback, Args&&... args) const {
      static_assert(std::is_void_v<std::invoke_result_t<Self&, Args...>>,
                    "a callback without an owner has nothing to return: use Observe()");
      if (owner_.alive()) std::invoke(callback, std::forward<Args>(args)...);
    }

    Observer owner_;
    Callback callback_;
  };

  Lifetime() = default;
  ~Lifetime() {
    End();
    Release(state_);
  }
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  template <class Callback>
  Guarded<std::decay_t<Callback>> Guard(Callback&& callback) const {
    return {Observe(), std::forward<Callback>(callback)};
  }
  Observer Observe() const { return Observer(state_); }

  // Ends it early, for an owner that stops before it is destroyed or whose destructor calls out.
  // May be repeated.
  void End() { state_->ended.store(true, std::memory_order_release); }

 private:
  static void Release(State* state) noexcept {
    if (state != nullptr && state->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete state;
    }
  }

  State* const state_ = new State;
};

}  // namespace drakkar
