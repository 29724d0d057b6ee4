#pragma once

#include <memory>
#include <string>

#include "storage/sqlite/io_observer.h"

namespace drakkar::storage {

// The layer between SQLite and the files of one store; docs/decisions/sqlite-vfs.md says why there
// is one. It does three things that SQLite's own layer does not:
//
// - it reports writes and syncs to an observer, which counts them or breaks the disk;
// - writes that follow each other go to the file as one, at the latest before the next sync
//   (gathered_writes.h);
// - locks and the index of the write-ahead log are in memory (shared_file.h). Connections made
//   through this object share them; any other program finds the file locked while there is one.
//
// One database file. Registered with SQLite while it lives; must outlive the connections opened
// through it.
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
