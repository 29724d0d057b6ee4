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
constexpr int kStoreFormat = 1;

// The file with the rows. Used by one thread at a time; every call blocks. A second thread copies
// the write-ahead log into the file meanwhile.
//
// After any error of WriteGroup the file holds what the last successful one left, and the object
// must only be destroyed.
class Database {
 public:
  struct Options {
    std::string directory;
    std::size_t file_bytes_max = 0;  // 0: as much as the disk has
    std::size_t log_bytes = 0;  // the write-ahead log is reset at this size, or at twice it at most
    IoObserver* observer = nullptr;  // sees writes and syncs of the open file; outlives it
  };

  // Opens or creates `store.db`. kDataLoss with advice when it is damaged; it is never reset.
  static Result<std::unique_ptr<Database>> Open(const Options& options);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // All rows in order; stops with the error of `row` if it has one.
  Result<void> Load(const std::function<Result<void>(Row row)>& row);
  Revision compacted() const { return compacted_; }

  // One synced commit: all of it or nothing.
  Result<void> WriteGroup(const std::vector<RowBatch>& batches);
  // After each group that was written: keeps the write-ahead log bounded, mostly on the other
  // thread. An error says that the file does not take it; the group is safe.
  Result<void> TendLog();
  Result<std::vector<Bytes>> Read(const std::vector<RowId>& rows);

  // Any thread.
  std::uint64_t syncs() const { return counter_.syncs; }

 private:
  Database() = default;
  Result<void> Configure(const Options& options);
  Result<void> ReadPageSize();
  std::size_t LogBytesMax() const { return 2 * log_bytes_; }
  Result<void> ReadMeta();
  Result<void> Prepare();
  Result<void> WriteBatch(const RowBatch& batch);
  Result<void> Execute(const char* sql);
  Result<void> Step(sqlite3_stmt* statement);  // one that returns no rows; resets it
  Error Failure(int code, std::string_view what) const;
  Error Failure(int code, std::string_view what, const std::string& detail) const;

  // Counts, then asks the observer of the options, if there is one.
  struct SyncCounter final : IoObserver {
    bool OnWrite(std::string_view path) override;
    bool OnSync(std::string_view path) override;
    void AfterSync(std::string_view path) override;
    std::atomic<std::uint64_t> syncs{0};
    IoObserver* next = nullptr;
  };

  std::string path_;
  SyncCounter counter_;
  std::unique_ptr<StoreVfs> vfs_;
  std::size_t page_bytes_ = 0;
  std::size_t log_bytes_ = 0;
  std::size_t log_frames_ = 0;  // in the log after the last commit
  std::unique_ptr<Checkpointer> checkpointer_;
  sqlite3* connection_ = nullptr;
  sqlite3_stmt* begin_ = nullptr;
  sqlite3_stmt* commit_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  sqlite3_stmt* remove_ = nullptr;
  sqlite3_stmt* select_ = nullptr;
  sqlite3_stmt* set_compacted_ = nullptr;
  Revision compacted_ = 0;
};

}  // namespace drakkar::storage
