#pragma once

#include <memory>
#include <utility>

#include "base/exec/event_loop.h"

namespace drakkar::apiserver {

// The way between an HTTP loop, which owns connections and everything about them, and the core's
// loop. Where both are the same loop, what would be posted runs at once.
//
// Close (or destroy) it on the core's loop when the HTTP loop has ended or is the same: what is
// then still on its way is dropped.
class Crossing {
 public:
  Crossing(EventLoop& http, EventLoop& core) : http_(http), core_(core) {}
  ~Crossing() { Close(); }
  Crossing(const Crossing&) = delete;
  Crossing& operator=(const Crossing&) = delete;

  EventLoop& http() const { return http_; }
  void Close() { *open_ = false; }
  // For what may outlive it; to be read on either loop.
  std::shared_ptr<const bool> open() const { return open_; }

  template <typename Function>
  void ToCore(Function function) const {
    if (&http_ == &core_) return function();
    core_.PostNew([open = open(), function = std::move(function)]() mutable {
      if (*open) function();
    });
  }
  template <typename Function>
  void ToHttp(Function function) const {
    Go(http_, std::move(function));
  }

  // A T that both loops may hold and that is always destroyed on the HTTP loop, because it has what
  // belongs there (a ResponseWriter). Only one loop at a time may use it.
  template <typename T>
  std::shared_ptr<T> Share(std::unique_ptr<T> made) const {
    return std::shared_ptr<T>(made.release(), [http = &http_, open = open()](T* last) {
      std::unique_ptr<T> owned(last);
      // Once closed, the HTTP loop has ended, and this may be long after it is gone.
      if (*open && !http->IsInLoop()) http->Post([owned = std::move(owned)] {});
    });
  }

 private:
  template <typename Function>
  void Go(EventLoop& loop, Function function) const {
    if (&http_ == &core_) return function();
    loop.Post([open = open(), function = std::move(function)]() mutable {
      if (*open) function();
    });
  }

  EventLoop& http_;
  EventLoop& core_;
  // Written on the core's loop when nothing runs on the HTTP loop.
  const std::shared_ptr<bool> open_ = std::make_shared<bool>(true);
};

}  // namespace drakkar::apiserver
