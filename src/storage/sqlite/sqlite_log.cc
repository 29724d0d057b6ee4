#include "storage/sqlite/sqlite_log.h"

#include <pthread.h>

#include <chrono>
#include <utility>

namespace drakkar::storage {
namespace {

// Overhead of a row in addition to its key and value, counted against the queue limit.
constexpr std::size_t kRowOverheadBytes = 96;

// A commit costs about 60 us of CPU however many rows it has. So while several writers are active,
// the next group waits briefly for more of them, for a short time compared with the sync that
// follows. A lone writer, whose groups have one batch, never waits.
constexpr std::chrono::microseconds kGatherTime(200);
constexpr std::size_t kFullGroup = 64;

std::size_t SizeOf(const RowBatch& batch) {
  std::size_t bytes = batch.removed.size() * sizeof(RowId);
  for (const Row& row : batch.rows) {
    bytes += kRowOverheadBytes + row.key.size() + (row.value == nullptr ? 0 : row.value->size());
  }
  return bytes;
}

std::size_t PayloadOf(const std::vector<RowBatch>& batches) {
  std::size_t bytes = 0;
  for (const RowBatch& batch : batches) {
    for (const Row& row : batch.rows) {
      bytes += row.key.size() + (row.value == nullptr ? 0 : row.value->size());
    }
  }
  return bytes;
}

}  // namespace

SqliteLog::SqliteLog(EventLoop& loop, std::unique_ptr<DirectoryLock> lock,
                     std::unique_ptr<Database> database, std::string file_system)
    : loop_(loop),
      file_system_(std::move(file_system)),
      lock_(std::move(lock)),
      database_(std::move(database)) {}

SqliteLog::~SqliteLog() {
  {
    std::lock_guard guard(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  if (writer_.joinable()) writer_.join();
}

void SqliteLog::Start(Listener listener) {
  listener_ = std::move(listener);
  writer_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "store-writer");
    Work();
  });
}

void SqliteLog::Append(RowBatch batch) {
  const std::size_t bytes = SizeOf(batch);
  queued_bytes_ += bytes;
  bool wake = false;
  {
    std::lock_guard guard(mutex_);
    pending_.bytes += bytes;
    if (!batch.rows.empty()) pending_.up_to = RowRevision(batch.rows.back().id);
    pending_.batches.push_back(std::move(batch));
    wake = !gathering_ || pending_.batches.size() >= kFullGroup;
  }
  if (wake) changed_.notify_one();
}

void SqliteLog::Read(std::vector<RowId> rows,
                     std::function<void(Result<std::vector<Bytes>>)> done) {
  bool refused = false;
  {
    std::lock_guard guard(mutex_);
    refused = closing_;
    if (!refused) pending_.reads.push_back({std::move(rows), done});
  }
  changed_.notify_one();
  if (!refused) return;
  PostToLoop([done = std::move(done)] { done(Unavailable("the store is stopped")); });
}

void SqliteLog::Close(std::function<void()> done) {
  on_closed_ = std::move(done);
  {
    std::lock_guard guard(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
}

RowLogStatistics SqliteLog::statistics() const {
  return {.commits = commits_,
          .syncs = syncs_,
          .bytes_written = bytes_written_,
          .file_system = file_system_};
}

void SqliteLog::PostToLoop(Task task) {
  loop_.Post(lifetime_.Guard(std::move(task)));
}

void SqliteLog::Work() {
  bool several_writers = false;
  while (true) {
    Group group;
    {
      std::unique_lock guard(mutex_);
      changed_.wait(guard, [this] {
        return closing_ || !pending_.batches.empty() || !pending_.reads.empty();
      });
      if (pending_.batches.empty() && pending_.reads.empty()) break;
      if (several_writers) {
        gathering_ = true;
        changed_.wait_for(guard, kGatherTime, [this] {
          return closing_ || !pending_.reads.empty() || pending_.batches.size() >= kFullGroup;
        });
        gathering_ = false;
      }
      std::swap(group, pending_);
      several_writers = group.batches.size() > 1;
    }
    // Reads ask for rows that were durable and not yet removed when they were queued. Serve them
    // before this group's removals, while all of those rows exist.
    Serve(std::move(group.reads));
    if (!group.batches.empty()) Write(std::move(group));
  }
  Finish();
}

void SqliteLog::Serve(std::vector<ReadRequest> reads) {
  for (ReadRequest& read : reads) {
    PostToLoop([done = std::move(read.done), values = database_->Read(read.rows)]() mutable {
      done(std::move(values));
    });
  }
}

void SqliteLog::Write(Group group) {
  if (!failed_) {
    Result<void> result = database_->WriteGroup(group.batches);
    if (result.ok()) {
      ++commits_;
      bytes_written_ += PayloadOf(group.batches);
      if (group.up_to != 0) {
        PostToLoop([this, up_to = group.up_to] { listener_.on_durable(up_to); });
      }
      result = database_->TendLog();
    }
    syncs_ = database_->syncs();
    failed_ = !result.ok();
    if (failed_) {
      PostToLoop([this, error = std::move(result).error()]() mutable {
        listener_.on_failed(std::move(error));
      });
    }
  }
  queued_bytes_ -= group.bytes;
}

void SqliteLog::Finish() {
  database_.reset();
  lock_.reset();
  PostToLoop([this] {
    if (on_closed_) std::exchange(on_closed_, nullptr)();
  });
}

}  // namespace drakkar::storage
