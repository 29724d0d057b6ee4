#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/env/clock.h"

namespace drakkar {

// Tells a program without a loop that files have changed since the watch was made.
class ChangeWatch {
 public:
  virtual ~ChangeWatch() = default;
  // Returns when something has changed, and at once if it has already; at the latest after `limit`.
  virtual void Wait(Duration limit) = 0;
};

// For programs without a loop that have to wait for something. Everything else uses timers.
class Pause {
 public:
  virtual ~Pause() = default;
  virtual void For(Duration duration) = 0;
  // Of files their content, of directories their entries; what does not exist is watched through
  // the nearest directory above it. Null where that cannot be had: then look again now and then.
  virtual std::unique_ptr<ChangeWatch> WatchChanges(const std::vector<std::string>& paths) {
    static_cast<void>(paths);
    return nullptr;
  }
};

// The most paths that one watch takes; more of them are not watched at all.
constexpr std::size_t kMaxWatchedPaths = 1'024;

Pause& RealPause();

}  // namespace drakkar
