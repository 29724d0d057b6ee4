#pragma once

#include <atomic>
#include <chrono>
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
//
// When the disk is full, a commit that does not fit is retried in intervals, and so is the check
// for space that reopens the log for writes: nothing announces that a disk has space again. At
// Close it is retried.
class SqliteLog final : public RowLog {
 public:
  SqliteLog(EventLoop& loop, std::unique_ptr<DirectoryLock> lock,
            std::unique_ptr<Database> database, std::string file_system,
            std::chrono::milliseconds space_interval);
  // Writes everything that was appended, then joins the thread.
  ~SqliteLog() override;

  void Start(Listener listener) override;
  void Append(RowBatch batch) override;
  void Read(std::vector<RowId> rows, std::function<void(Result<std::vector<Bytes>>)> done) override;
  void Verify(RowId after, std::size_t max_bytes, std::function<void(Result<Slice>)> done) override;
  void Close(std::function<void()> done) override;
  std::size_t queued_bytes() const override { return queued_bytes_.load(); }
  RowLogStatistics statistics() const override;

 private:
  struct ReadRequest {
    std::vector<RowId> rows;
    std::function<void(Result<std::vector<Bytes>>)> done;
  };
  struct VerifyRequest {
    RowId after;
    std::size_t max_bytes;
    std::function<void(Result<Slice>)> done;
  };
  struct Group {
    std::vector<RowBatch> batches;
    std::vector<ReadRequest> reads;
    std::vector<VerifyRequest> verifications;
    std::size_t bytes = 0;
    Revision up_to = 0;

    bool has_questions() const { return !reads.empty() || !verifications.empty(); }
    bool empty() const { return batches.empty() && !has_questions(); }
  };

  void Work();
  // Waits for work, and takes it from pending_. Returns false if the writer is to finish.
  bool Take(Group& group, bool several_writers);
  void Serve(Group& group);
  Result<Slice> VerifySlice(const VerifyRequest& request);
  // Writes unwritten_, which stays as it is if the disk is full.
  void Write();
  void Fail(Error error);
  // Reports a change to the loop.
  void SetSpace(std::optional<Error> full, bool stalled);
  // While the disk is full: whether there is space again.
  void LookForSpace();
  void Finish();
  // Runs the task on the loop unless the log has been destroyed by then.
  void PostToLoop(Task task);

  EventLoop& loop_;
  const std::string file_system_;
  const std::chrono::milliseconds space_interval_;
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
  Group unwritten_;  // what the next commit writes
  bool failed_ = false;
  bool full_ = false;     // writes are refused
  bool stalled_ = false;  // unwritten_ does not fit on the disk

  std::function<void()> on_closed_;
  std::thread writer_;
  Lifetime lifetime_;  // outlives the writer
};

}  // namespace drakkar::storage
