#pragma once

#include <memory>
#include <utility>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"

namespace drakkar::apiserver {

// The way between an HTTP loop, which owns connections and everything about them, and the core's
// loop. Where both are the same loop, what would be posted runs at once.
//
// Close (or destroy) it on the core's loop when the HTTP loop has ended or is the same: what is
// then still on its way is dropped.
class Crossing {
 public:
  Crossing(EventLoop& http, EventLoop& core) : http_(http), core_(core) {}
  Crossing(const Crossing&) = delete;
  Crossing& operator=(const Crossing&) = delete;

  EventLoop& http() const { return http_; }
  void Close() { lifetime_.End(); }
  // Of the crossing, for what may outlive it; to be asked on either loop.
  Lifetime::Observer Observe() const { return lifetime_.Observe(); }
  // A callback that does nothing once the crossing is closed.
  template <typename Function>
  auto Guard(Function function) const {
    return lifetime_.Guard(std::move(function));
  }

  template <typename Function>
  void ToCore(Function function) const {
    if (&http_ == &core_) return function();
    core_.PostNew(lifetime_.Guard(std::move(function)));
  }
  template <typename Function>
  void ToHttp(Function function) const {
    if (&http_ == &core_) return function();
    http_.Post(lifetime_.Guard(std::move(function)));
  }

  // A T that both loops may hold and that is always destroyed on the HTTP loop, because it has what
  // belongs there (a ResponseWriter). Only one loop at a time may use it.
  template <typename T>
  std::shared_ptr<T> Share(std::unique_ptr<T> made) const {
    return std::shared_ptr<T>(made.release(),
                              [http = &http_, crossing = lifetime_.Observe()](T* last) {
                                std::unique_ptr<T> owned(last);
                                // Once closed, the HTTP loop has ended, and this may be long after
                                // it is gone.
                                if (crossing.alive() && !http->IsInLoop())
                                  http->Post([owned = std::move(owned)] {});
                              });
  }

 private:
  EventLoop& http_;
  EventLoop& core_;
  // Ends on the core's loop when nothing runs on the HTTP loop.
  Lifetime lifetime_;
};

}  // namespace drakkar::apiserver
