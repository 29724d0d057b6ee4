#pragma once

#include <memory>
#include <utility>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"

namespace drakkar::apiserver {

// Connects an HTTP loop, which owns connections and everything about them, with the core's loop. If
// both are the same loop, functions run at once instead of being posted.
//
// Close (or destroy) it on the core's loop, when the HTTP loop has ended or is the same. Whatever
// is still in flight is dropped.
class LoopBridge {
 public:
  LoopBridge(EventLoop& http, EventLoop& core) : http_(http), core_(core) {}
  LoopBridge(const LoopBridge&) = delete;
  LoopBridge& operator=(const LoopBridge&) = delete;

  EventLoop& http() const { return http_; }
  void Close() { lifetime_.End(); }
  // For objects that may outlive the bridge; may be asked on either loop.
  Lifetime::Observer Observe() const { return lifetime_.Observe(); }
  // A callback that does nothing once the bridge is closed.
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

  // A T that both loops may hold and that is always destroyed on the HTTP loop, because it has
  // members that belong there (a ResponseWriter). Only one loop may use it at a time.
  template <typename T>
  std::shared_ptr<T> Share(std::unique_ptr<T> made) const {
    return std::shared_ptr<T>(made.release(),
                              [http = &http_, bridge = lifetime_.Observe()](T* last) {
                                std::unique_ptr<T> owned(last);
                                // Once closed, the HTTP loop has ended and may be gone.
                                if (bridge.alive() && !http->IsInLoop())
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
