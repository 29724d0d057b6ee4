#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/env/clock.h"

namespace drakkar {

// Notifies a program without a loop that files have changed since the watch was created.
class ChangeWatch {
 public:
  virtual ~ChangeWatch() = default;
  // Returns when something has changed, immediately if it already has, or after `limit`.
  virtual void Wait(Duration limit) = 0;
};

// Waiting for programs without a loop. Everything else uses timers.
class Pause {
 public:
  virtual ~Pause() = default;
  virtual void For(Duration duration) = 0;
  // Watches the content of files and the entries of directories; what does not exist is watched
  // through its closest existing parent. Null if that is not possible; poll in that case.
  virtual std::unique_ptr<ChangeWatch> WatchChanges(const std::vector<std::string>& paths) {
    static_cast<void>(paths);
    return nullptr;
  }
};

// Limit per watch; with more paths, none is watched.
constexpr std::size_t kMaxWatchedPaths = 1'024;

Pause& RealPause();

}  // namespace drakkar
