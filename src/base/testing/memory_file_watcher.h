#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/os/file_watcher.h"

namespace drakkar {

// A watcher whose events come from the test. Emit posts to the loop, as the kernel would: the
// callback never runs inside the call that caused the change.
class MemoryFileWatcher final : public FileWatcher {
 public:
  explicit MemoryFileWatcher(EventLoop& loop) : loop_(loop) {}

  Result<std::unique_ptr<FileWatch>> Watch(const std::string& directory,
                                           std::function<void(const FileEvent&)> on_event) override;

  void Emit(const std::string& directory, FileChange change, const std::string& name);
  // The next Watch fails with this error.
  void FailNextWatch(Error error) { fail_next_ = std::move(error); }
  bool IsWatched(const std::string& directory) const;

 private:
  struct Entry {
    std::string directory;
    std::function<void(const FileEvent&)> on_event;
  };
  struct Handle;

  EventLoop& loop_;
  std::vector<std::weak_ptr<Entry>> entries_;
  std::optional<Error> fail_next_;
};

}  // namespace drakkar
