#pragma once

#include <map>
#include <memory>
#include <optional>

#include "base/exec/event_loop.h"
#include "storage/local/local_store.h"

namespace drakkar::storage {

// The part of an in-memory store that survives a crash: the rows whose sync has finished. Only one
// store may use it at a time; destroying that store without Stop simulates a crash. Faults are
// injected here.
class MemoryDisk {
 public:
  // How long a sync takes. Transactions that arrive meanwhile share the next sync.
  void set_sync_delay(Duration delay) { sync_delay_ = delay; }
  // The n-th sync from now (1 is the next) fails with this error, and so does the store.
  void FailSync(std::uint64_t nth, Error error);
  // Syncs hang from now on, until ReleaseSyncs lets them finish.
  void HoldSyncs() { held_ = true; }
  void ReleaseSyncs();
  // Nothing fits on the disk any more, or everything does again. The store is told.
  void SetFull(bool full);
  // The row with the newest value of `key` is damaged when the store is opened again.
  void Damage(const std::string& key);

  std::size_t rows() const { return rows_.size(); }

 private:
  friend class MemoryLog;
  friend std::unique_ptr<Store> OpenMemoryStore(EventLoop& loop, MemoryDisk& disk,
                                                LocalStoreLimits limits);

  std::map<RowId, Row> rows_;
  Revision compacted_ = 0;
  Duration sync_delay_ = Duration::zero();
  bool held_ = false;
  std::function<void()> on_released_;
  std::function<void()> on_full_;
  std::optional<std::pair<std::uint64_t, Error>> failure_;
};

// The embedded store without files or threads, for simulation and tests. `disk` must outlive it.
std::unique_ptr<Store> OpenMemoryStore(EventLoop& loop, MemoryDisk& disk,
                                       LocalStoreLimits limits = {});

}  // namespace drakkar::storage
