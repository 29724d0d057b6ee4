#include "base/testing/memory_file_watcher.h"

namespace drakkar {

struct MemoryFileWatcher::Handle final : FileWatch {
  explicit Handle(std::shared_ptr<Entry> entry) : entry_(std::move(entry)) {}
  std::shared_ptr<Entry> entry_;
};

Result<std::unique_ptr<FileWatch>> MemoryFileWatcher::Watch(
    const std::string& directory, std::function<void(const FileEvent&)> on_event) {
  if (fail_next_) {
    Error error = *std::move(fail_next_);
    fail_next_.reset();
    return error;
  }
  auto entry = std::make_shared<Entry>(Entry{directory, std::move(on_event)});
  std::erase_if(entries_, [](const auto& weak) { return weak.expired(); });
  entries_.push_back(entry);
  return std::unique_ptr<FileWatch>(std::make_unique<Handle>(std::move(entry)));
}

void MemoryFileWatcher::Emit(const std::string& directory, FileChange change,
                             const std::string& name) {
  for (const auto& weak : entries_) {
    auto entry = weak.lock();
    if (!entry || entry->directory != directory) continue;
    loop_.Post([weak, event = FileEvent{change, name}] {
      // Ended in the meantime: no event, as with the real watcher.
      if (auto alive = weak.lock()) alive->on_event(event);
    });
  }
}

bool MemoryFileWatcher::IsWatched(const std::string& directory) const {
  for (const auto& weak : entries_) {
    auto entry = weak.lock();
    if (entry && entry->directory == directory) return true;
  }
  return false;
}

}  // namespace drakkar
