#pragma once

#include <functional>
#include <memory>

namespace drakkar {

class UvLoop;

// Destroying it guarantees that the callback will not run afterwards. Must be destroyed on the
// loop.
class [[nodiscard]] DescriptorWatch {
 public:
  virtual ~DescriptorWatch() = default;
};

// Calls `on_readable` on the loop while `descriptor` (a pipe, socket, pidfd or inotify instance;
// never a regular file) is readable or its other end is closed. The descriptor is borrowed and must
// stay open until the watch is destroyed. The callback may destroy the watch. Returns null if the
// kernel cannot poll the descriptor. Call it on the loop.
std::unique_ptr<DescriptorWatch> WatchReadable(UvLoop& loop, int descriptor,
                                               std::function<void()> on_readable);

// The same for a descriptor that accepts bytes (or whose reader has closed). A descriptor can have
// only one watch of either kind; duplicate it for the other.
std::unique_ptr<DescriptorWatch> WatchWritable(UvLoop& loop, int descriptor,
                                               std::function<void()> on_writable);

}  // namespace drakkar
