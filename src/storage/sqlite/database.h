#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result/result.h"
#include "storage/local/row.h"
#include "storage/sqlite/checkpointer.h"
#include "storage/sqlite/store_vfs.h"

struct sqlite3;
struct sqlite3_stmt;

namespace drakkar::storage {

// The format this code reads and writes (docs/formats/store.md).
constexpr int kStoreFormat = 2;

// A revision beyond this cannot have been reached; its row's id is damaged.
constexpr Revision kMaxRevision = Revision{1} << 46;

// The file with the rows. Used by one thread at a time; every call blocks. Meanwhile a second
// thread copies the write-ahead log into the file.
//
// After WriteGroup fails, the file holds what the last successful call left. Unless the disk was
// full (kResourceExhausted), the object can only be destroyed.
class Database {
 public:
  struct Options {
    std::string directory;
    std::size_t file_bytes_max = 0;  // 0: limited only by the disk
    // The write-ahead log is reset at this size, or at most at twice this size.
    std::size_t log_bytes = 0;
    IoObserver* observer = nullptr;  // sees writes and syncs of the file; must outlive the database
    bool read_only = false;          // nothing is created, upgraded or written
  };

  // Opens or creates `store.db`, and upgrades an older format. A file whose structure is damaged is
  // kDataLoss with advice; it is never reset.
  static Result<std::unique_ptr<Database>> Open(const Options& options);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Calls `row` with all rows after `after` in order until it returns false. A row that does not
  // match its checksum is `damaged` and has no value.
  Result<void> Load(const std::function<bool(Row row)>& row, RowId after = 0);
  Revision compacted() const { return compacted_; }
  int format() const { return format_; }
  // SQLite's own check of the file's structure. Reads all of it.
  Result<void> CheckStructure();

  // Writes all batches in one synced commit, or nothing.
  Result<void> WriteGroup(const std::vector<RowBatch>& batches);
  // Call it after each written group. Limits the write-ahead log, mostly on the other thread. An
  // error means that the file cannot be written; the group itself is durable.
  Result<void> TendLog();
  Result<std::vector<Bytes>> Read(const std::vector<RowId>& rows);
  // kResourceExhausted if the disk has too little space left for more writes. After that it takes
  // some more space (`was_full`) until there is enough again.
  Result<void> CheckSpace(bool was_full) const;

  // Callable from any thread.
  std::uint64_t syncs() const { return counter_.syncs; }

 private:
  Database() = default;
  Result<void> Configure(const Options& options);
  Result<void> ReadPageSize();
  std::size_t LogBytesMax() const { return 2 * log_bytes_; }
  Result<void> ReadMeta();
  Result<void> Upgrade();
  Result<void> Prepare();
  void ReserveLog() const;
  // Whether the open file is still the one at its path.
  Result<void> CheckIdentity() const;
  Result<void> WriteBatch(const RowBatch& batch);
  Result<void> Execute(const char* sql);
  Result<void> Step(sqlite3_stmt* statement);  // for a statement that returns no rows; resets it
  Error Failure(int code, std::string_view what) const;
  Error Failure(int code, std::string_view what, const std::string& detail) const;

  // Counts, then calls the observer from the options, if there is one.
  struct SyncCounter final : IoObserver {
    bool OnWrite(std::string_view path) override;
    bool OnSync(std::string_view path) override;
    void AfterSync(std::string_view path) override;
    bool HasSpace(std::string_view path) override;
    std::atomic<std::uint64_t> syncs{0};
    IoObserver* next = nullptr;
  };

  std::string directory_;
  std::string path_;
  std::uint64_t inode_ = 0;
  SyncCounter counter_;
  std::unique_ptr<StoreVfs> vfs_;
  std::size_t page_bytes_ = 0;
  std::size_t log_bytes_ = 0;
  std::size_t log_frames_ = 0;  // frames in the log after the last commit
  std::unique_ptr<Checkpointer> checkpointer_;
  sqlite3* connection_ = nullptr;
  sqlite3_stmt* begin_ = nullptr;
  sqlite3_stmt* commit_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  sqlite3_stmt* remove_ = nullptr;
  sqlite3_stmt* select_ = nullptr;
  sqlite3_stmt* set_compacted_ = nullptr;
  Revision compacted_ = 0;
  int format_ = 0;
};

}  // namespace drakkar::storage
