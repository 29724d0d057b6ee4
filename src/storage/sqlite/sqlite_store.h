#pragma once

#include <memory>
#include <string>

#include "base/exec/event_loop.h"
#include "base/result/result.h"
#include "storage/local/local_store.h"

namespace drakkar::storage {

class IoObserver;

struct SqliteStoreOptions {
  std::string directory;  // made if it is not there; held by one process at a time
  LocalStoreLimits limits;
  // The file stops growing here and the store fails as on a full disk; 0: no bound of ours.
  std::size_t file_bytes_max = 0;
  // How long the write-ahead log gets before it is reset; twice that when the disk is slow.
  std::size_t log_bytes = std::size_t{16} << 20;
  IoObserver* observer = nullptr;  // for tests: sees and breaks I/O; outlives the store
};

// Opens the embedded store, reading everything into memory. Blocks; call it before the loop has
// other work. Errors say what to do: kFailedPrecondition when the directory is in use or the format
// is newer, kDataLoss when the file is damaged (it is left as it is).
Result<std::unique_ptr<Store>> OpenSqliteStore(EventLoop& loop, SqliteStoreOptions options);

}  // namespace drakkar::storage
