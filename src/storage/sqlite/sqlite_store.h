#pragma once

#include <memory>
#include <string>

#include "base/exec/event_loop.h"
#include "base/result/result.h"
#include "storage/local/local_store.h"

namespace drakkar::storage {

class IoObserver;

struct SqliteStoreOptions {
  std::string directory;  // created if missing; held by one process at a time
  LocalStoreLimits limits;
  // The file stops growing at this size, as on a full disk. 0: no limit.
  std::size_t file_bytes_max = 0;
  // Size at which the write-ahead log is reset. It may reach twice that when the disk is slow.
  std::size_t log_bytes = std::size_t{16} << 20;
  // How often a full disk is looked at.
  std::chrono::milliseconds space_interval{1'000};
  IoObserver* observer = nullptr;  // for tests: observes and fails I/O; must outlive the store
};

// Opens the embedded store and reads everything into memory. Blocks; call it before the loop has
// other work. Errors say what to do: kFailedPrecondition if the directory is in use or the format
// is newer, kDataLoss if the file is damaged (it is not modified).
Result<std::unique_ptr<Store>> OpenSqliteStore(EventLoop& loop, SqliteStoreOptions options);

}  // namespace drakkar::storage
