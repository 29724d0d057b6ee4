#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/env/clock.h"
#include "base/result/result.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/directory_lock.h"
#include "storage/store.h"

// Operations on a store file while no server uses it. Everything here blocks, and takes the lock of
// the directory: kFailedPrecondition if a server holds it.
namespace drakkar::storage {

// A store that comes from elsewhere, or lost its newest changes, continues this far above the
// newest revision it knows: a revision that a client has seen must never be used again.
constexpr Revision kRevisionLeap = 1'000'000'000;

struct StoreCheck {
  int format = 0;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;  // of keys and values
  std::vector<UnreadableEntry> damaged;
  std::optional<Error> structure;  // if SQLite cannot read all of the file
  bool ok() const { return damaged.empty() && !structure; }
};
// Reads everything and changes nothing.
Result<StoreCheck> CheckStoreFile(const std::string& directory,
                                  const std::function<void(const StoreCheck&)>& progress = {});

struct StoreRepair {
  bool was_intact = false;            // then nothing was done
  std::uint64_t objects = 0;          // in the repaired store
  std::vector<std::string> restored;  // keys whose older version was restored
  std::vector<std::string> lost;      // keys that were lost
  bool may_have_lost_more = false;    // a part of the file that named its keys is unreadable
  std::string kept_as;                // where the damaged file is now
};
// Writes a new file with everything that is intact, and moves the damaged one aside. If the newest
// version of a key is damaged, the newest intact one is restored at a new revision, or the key is
// removed with `drop_damaged`. Clients list again afterwards.
Result<StoreRepair> RepairStoreFile(const std::string& directory, const Clock& clock,
                                    bool drop_damaged);

// Replaces the store in a directory with other contents: keeps the old file under another name and
// puts the new one in its place when it is complete.
class StoreFileWriter {
 public:
  // kFailedPrecondition if there is a store, unless it may be replaced.
  static Result<std::unique_ptr<StoreFileWriter>> Open(const std::string& directory,
                                                       const Clock& clock, bool replace);
  ~StoreFileWriter();
  StoreFileWriter(const StoreFileWriter&) = delete;
  StoreFileWriter& operator=(const StoreFileWriter&) = delete;

  // Each key once, in any order. Its revisions are kept.
  Result<void> Add(const Entry& entry);
  // The store continues after `revision`. Returns where the old file is now; empty if there was
  // none.
  Result<std::string> Finish(Revision revision);

 private:
  StoreFileWriter(std::string directory, const Clock& clock, std::unique_ptr<DirectoryLock> lock);
  Result<void> Flush();

  const std::string directory_;
  const std::string building_;
  const Clock& clock_;
  std::unique_ptr<DirectoryLock> lock_;
  std::unique_ptr<Database> database_;
  std::unordered_map<Revision, std::size_t> positions_;  // taken so far
  RowBatch batch_;
  std::size_t batch_bytes_ = 0;
};

}  // namespace drakkar::storage
