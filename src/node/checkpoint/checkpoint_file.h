#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "node/checkpoint/blocking_work.h"
#include "node/checkpoint/claim_checkpoint.h"

namespace drakkar::node {

// The claim checkpoint on disk: `dra_manager_state`, which Kubernetes can read, and a side file for
// changes that must be durable at once (checkpoint_slots.h). The checkpoint follows within
// kSettleAfter, replaced atomically and synced; a failed write leaves the old content. Stores
// requested during a write share the next one, so many pods starting at once cost two syncs, not
// one each. Loop-bound.
class CheckpointFile {
 public:
  // Not sooner, because replacing a file stalls the file system's journal and thus the next pod's
  // start.
  static constexpr Duration kSettleAfter = std::chrono::seconds(1);

  // `side_file`: false saves 256 KiB, for files that are in memory.
  CheckpointFile(EventLoop& loop, FileSystem& files, BlockingWork& work, std::string directory,
                 bool side_file = true);
  ~CheckpointFile();

  // Blocks; only for startup. An absent file is created empty. An unusable file is an error that
  // says what to do, never an empty state: prepared devices would be forgotten.
  Result<CheckpointState> LoadOrCreate();

  // `current` is called when a write begins, so that a shared write contains everybody's changes.
  void SetSource(std::function<CheckpointState()> current) { current_ = std::move(current); }
  // Makes the current state durable; `done` runs once it is on disk.
  void Store(std::function<void(Result<void>)> done);
  // Stores the current state within kSettleAfter, without a callback. Retried every second until it
  // succeeds.
  void StoreEventually();
  // Writes what StoreEventually has not written yet, before the process exits. Blocks.
  void Flush();

  const std::string& path() const { return path_; }

 private:
  using Waiting = std::vector<std::function<void(Result<void>)>>;

  Result<std::optional<std::string>> LoadSlots(const std::string& checkpoint);
  void WriteSlot();
  void WriteFile();
  void ClearSlots();
  void EndSlotWrite();

  EventLoop& loop_;
  FileSystem& files_;
  BlockingWork& work_;
  const std::string directory_;
  const bool side_file_;
  const std::string path_;
  const std::string slots_path_;
  std::function<CheckpointState()> current_;

  bool has_slots_ = false;
  std::uint64_t sequence_ = 0;  // of the last slot written
  bool writing_slot_ = false;
  Waiting waiting_;  // for a slot

  std::string written_id_;  // of the content of path_
  std::string next_id_;     // of what is being written to it; empty otherwise
  bool owes_file_ = false;  // path_ lacks changes that were stored
  Waiting waiting_for_file_;
  TimerHandle settle_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
