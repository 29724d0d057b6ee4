#pragma once

#include <map>
#include <memory>
#include <optional>

#include "base/exec/event_loop.h"
#include "storage/local/local_store.h"

namespace drakkar::storage {

// What survives a crash of a store in memory: the rows whose sync was finished. One store at a time
// uses it; destroying that store without Stop is the crash. Faults are switched here.
class MemoryDisk {
 public:
  // How long a sync takes; transactions that come meanwhile share the next one.
  void set_sync_delay(Duration delay) { sync_delay_ = delay; }
  // The n-th sync from now (1: the next) fails with this, and so does the store.
  void FailSync(std::uint64_t nth, Error error);
  // Syncs take forever from now on; ReleaseSyncs lets them finish.
  void HoldSyncs() { held_ = true; }
  void ReleaseSyncs();

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
  std::optional<std::pair<std::uint64_t, Error>> failure_;
};

// The embedded store without files or threads, for simulation and tests. `disk` outlives it.
std::unique_ptr<Store> OpenMemoryStore(EventLoop& loop, MemoryDisk& disk,
                                       LocalStoreLimits limits = {});

}  // namespace drakkar::storage
