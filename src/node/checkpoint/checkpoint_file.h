#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/exec/event_loop.h"
#include "node/checkpoint/blocking_work.h"
#include "node/checkpoint/claim_checkpoint.h"

namespace drakkar::node {

// The claim checkpoint on disk. Writers that come while a write is under way share the next one, so
// many pods starting at once cost two syncs, not two each. A write replaces the file as a whole and
// is synced; a failed one leaves the old content. Loop-bound.
class CheckpointFile {
 public:
  CheckpointFile(EventLoop& loop, FileSystem& files, BlockingWork& work, std::string directory);
  ~CheckpointFile();

  // Blocks, at start only. An absent file is created empty. A file that cannot be used is an error
  // that says what to do, never an empty state: prepared devices would be forgotten.
  Result<CheckpointState> LoadOrCreate();

  // `current` is asked when the write begins, so that a shared write has everybody's changes.
  void SetSource(std::function<CheckpointState()> current) { current_ = std::move(current); }
  // Writes what `current` then gives; `done` once that is on disk.
  void Store(std::function<void(Result<void>)> done);
  // Without anybody waiting: tried again every second until it works.
  void StoreEventually();

  const std::string& path() const { return path_; }

 private:
  void Write();

  EventLoop& loop_;
  FileSystem& files_;
  BlockingWork& work_;
  const std::string directory_;
  const std::string path_;
  std::function<CheckpointState()> current_;
  bool writing_ = false;
  std::vector<std::function<void(Result<void>)>> waiting_;
  TimerHandle retry_;
};

}  // namespace drakkar::node
