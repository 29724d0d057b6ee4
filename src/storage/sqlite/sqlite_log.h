#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "storage/local/row_log.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/directory_lock.h"

namespace drakkar::storage {

// The log in a SQLite file, with one writer thread. Each commit contains all batches that arrived
// while the previous commit was being synced. If the writer is idle, a batch starts at once.
class SqliteLog final : public RowLog {
 public:
  SqliteLog(EventLoop& loop, std::unique_ptr<DirectoryLock> lock,
            std::unique_ptr<Database> database, std::string file_system);
  // Writes everything that was appended, then joins the thread.
  ~SqliteLog() override;

  void Start(Listener listener) override;
  void Append(RowBatch batch) override;
  void Read(std::vector<RowId> rows, std::function<void(Result<std::vector<Bytes>>)> done) override;
  void Close(std::function<void()> done) override;
  std::size_t queued_bytes() const override { return queued_bytes_.load(); }
  RowLogStatistics statistics() const override;

 private:
  struct ReadRequest {
    std::vector<RowId> rows;
    std::function<void(Result<std::vector<Bytes>>)> done;
  };
  struct Group {
    std::vector<RowBatch> batches;
    std::vector<ReadRequest> reads;
    std::size_t bytes = 0;
    Revision up_to = 0;
  };

  void Work();
  void Serve(std::vector<ReadRequest> reads);
  void Write(Group group);
  void Finish();
  // Runs the task on the loop unless the log has been destroyed by then.
  void PostToLoop(Task task);

  EventLoop& loop_;
  const std::string file_system_;
  Listener listener_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Group pending_;           // guarded by mutex_
  bool closing_ = false;    // guarded by mutex_
  bool gathering_ = false;  // guarded by mutex_: the writer waits for a larger group

  std::atomic<std::size_t> queued_bytes_{0};
  std::atomic<std::uint64_t> commits_{0};
  std::atomic<std::uint64_t> syncs_{0};
  std::atomic<std::uint64_t> bytes_written_{0};

  // Used by the writer only.
  std::unique_ptr<DirectoryLock> lock_;
  std::unique_ptr<Database> database_;
  bool failed_ = false;

  std::function<void()> on_closed_;
  std::thread writer_;
  Lifetime lifetime_;  // outlives the writer
};

}  // namespace drakkar::storage
