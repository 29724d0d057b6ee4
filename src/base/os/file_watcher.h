#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result/result.h"

namespace drakkar {

enum class FileChange {
  kCreated,   // a name appeared: created, or renamed into the directory (possibly over an old one)
  kModified,  // a file was closed after writing, or its attributes changed; see FileWatcherOptions
  kRemoved,   // a name disappeared: deleted, or renamed out of the directory
  kEventsLost,  // the kernel dropped events: list the directory again; `name` is empty
  // the directory itself was removed or moved, no more events follow; `name` is empty
  kDirectoryGone,
};

struct FileEvent {
  FileChange change = FileChange::kCreated;
  std::string name;  // within the directory

  bool operator==(const FileEvent&) const = default;
};

// Destroying it ends the watch; its callback does not run afterwards.
class [[nodiscard]] FileWatch {
 public:
  virtual ~FileWatch() = default;
};

// Reports changes of names in directories, without recursion. Events arrive on the loop, in order.
// To miss nothing, watch first and list afterwards; a name may then be seen twice. A watch must not
// outlive its watcher.
class FileWatcher {
 public:
  virtual ~FileWatcher() = default;
  virtual Result<std::unique_ptr<FileWatch>> Watch(
      const std::string& directory, std::function<void(const FileEvent&)> on_event) = 0;
};

struct FileWatcherOptions {
  // Reports each write as kModified too, for files that stay open, such as logs.
  bool reports_writes = false;
};

class UvLoop;
// Uses one inotify instance for all directories of this watcher.
Result<std::unique_ptr<FileWatcher>> MakeFileWatcher(UvLoop& loop, FileWatcherOptions options = {});

}  // namespace drakkar
