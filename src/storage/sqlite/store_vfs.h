#pragma once

#include <memory>
#include <string>

#include "storage/sqlite/io_observer.h"

namespace drakkar::storage {

// The layer between SQLite and the files of one store; docs/decisions/sqlite-vfs.md says why it
// exists. It does three things that SQLite's own layer does not:
//
// - it reports writes and syncs to an observer, which counts them or simulates a broken disk;
// - it combines adjacent writes into one, and writes them before the next sync at the latest
//   (gathered_writes.h);
// - it keeps the locks and the write-ahead log's index in memory (shared_file.h). Connections made
//   through this object share them; other programs find the file locked while one is open.
//
// For one database file. Registered with SQLite during its lifetime; must outlive the connections
// opened through it.
class StoreVfs {
 public:
  explicit StoreVfs(IoObserver& observer);
  ~StoreVfs();
  StoreVfs(const StoreVfs&) = delete;
  StoreVfs& operator=(const StoreVfs&) = delete;

  const char* name() const { return name_.c_str(); }

 private:
  struct Impl;
  std::string name_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drakkar::storage
