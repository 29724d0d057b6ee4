#include "storage/sqlite/sqlite_log.h"

#include <pthread.h>

#include <chrono>
#include <iterator>
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
                     std::unique_ptr<Database> database, std::string file_system,
                     std::chrono::milliseconds space_interval)
    : loop_(loop),
      file_system_(std::move(file_system)),
      space_interval_(space_interval),
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

void SqliteLog::Verify(RowId after, std::size_t max_bytes,
                       std::function<void(Result<Slice>)> done) {
  bool refused = false;
  {
    std::lock_guard guard(mutex_);
    refused = closing_;
    if (!refused) pending_.verifications.push_back({after, max_bytes, done});
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

bool SqliteLog::Take(Group& group, bool several_writers) {
  std::unique_lock guard(mutex_);
  if (stalled_) {
    changed_.wait_for(guard, space_interval_,
                      [this] { return closing_ || pending_.has_questions(); });
  } else if (full_) {
    changed_.wait_for(guard, space_interval_, [this] { return closing_ || !pending_.empty(); });
  } else {
    changed_.wait(guard, [this] { return closing_ || !pending_.empty(); });
  }
  if (pending_.empty() && closing_) return false;
  if (several_writers && !stalled_) {
    gathering_ = true;
    changed_.wait_for(guard, kGatherTime, [this] {
      return closing_ || pending_.has_questions() || pending_.batches.size() >= kFullGroup;
    });
    gathering_ = false;
  }
  std::swap(group, pending_);
  return true;
}

void SqliteLog::Work() {
  bool several_writers = false;
  for (Group group; Take(group, several_writers); group = {}) {
    several_writers = group.batches.size() > 1;
    // Reads ask for rows that were durable and not yet removed when they were queued. Serve them
    // before this group's removals, while all of those rows exist.
    Serve(group);
    unwritten_.bytes += group.bytes;
    if (group.up_to != 0) unwritten_.up_to = group.up_to;
    std::move(group.batches.begin(), group.batches.end(), std::back_inserter(unwritten_.batches));
    if (!unwritten_.batches.empty()) {
      Write();
    } else if (full_) {
      LookForSpace();
    }
  }
  if (!unwritten_.batches.empty()) Write();
  Finish();
}

void SqliteLog::Serve(Group& group) {
  for (ReadRequest& read : group.reads) {
    PostToLoop([done = std::move(read.done), values = database_->Read(read.rows)]() mutable {
      done(std::move(values));
    });
  }
  for (VerifyRequest& request : group.verifications) {
    PostToLoop([done = std::move(request.done), slice = VerifySlice(request)]() mutable {
      done(std::move(slice));
    });
  }
}

Result<RowLog::Slice> SqliteLog::VerifySlice(const VerifyRequest& request) {
  Slice slice;
  bool more = false;
  RowId last = 0;
  RETURN_IF_ERROR(database_->Load(
      [&](Row row) {
        more = slice.bytes >= request.max_bytes;
        if (more) return false;
        ++slice.rows;
        slice.bytes += row.key.size() + (row.value == nullptr ? 0 : row.value->size());
        last = row.id;
        if (row.damaged) {
          slice.damaged.push_back(
              {std::move(row.key), RowRevision(row.id),
               "row " + std::to_string(row.id) + " does not match its checksum"});
        }
        return true;
      },
      request.after));
  slice.last = more ? last : 0;
  return slice;
}

void SqliteLog::Write() {
  Result<void> result = failed_ ? Ok() : database_->WriteGroup(unwritten_.batches);
  if (!result.ok() && result.error().code == ErrorCode::kResourceExhausted) {
    return SetSpace(std::move(result).error(), /*stalled=*/true);
  }
  if (!failed_ && result.ok()) {
    ++commits_;
    bytes_written_ += PayloadOf(unwritten_.batches);
    if (unwritten_.up_to != 0) {
      PostToLoop([this, up_to = unwritten_.up_to] { listener_.on_durable(up_to); });
    }
    LookForSpace();
  }
  syncs_ = database_->syncs();
  if (!result.ok()) Fail(std::move(result).error());
  queued_bytes_ -= unwritten_.bytes;
  unwritten_ = {};
}

void SqliteLog::LookForSpace() {
  Result<void> result = database_->TendLog();
  if (result.ok()) result = database_->CheckSpace(full_);
  if (result.ok()) return SetSpace(std::nullopt, /*stalled=*/false);
  if (result.error().code != ErrorCode::kResourceExhausted) return Fail(std::move(result).error());
  SetSpace(std::move(result).error(), /*stalled=*/false);
}

void SqliteLog::Fail(Error error) {
  if (std::exchange(failed_, true)) return;
  PostToLoop([this, error = std::move(error)]() mutable { listener_.on_failed(std::move(error)); });
}

void SqliteLog::SetSpace(std::optional<Error> full, bool stalled) {
  if (full.has_value() == full_ && stalled == stalled_) return;
  full_ = full.has_value();
  stalled_ = stalled;
  PostToLoop([this, full = std::move(full), stalled]() mutable {
    if (listener_.on_space) listener_.on_space(std::move(full), stalled);
  });
}

void SqliteLog::Finish() {
  database_.reset();
  lock_.reset();
  PostToLoop([this] {
    if (on_closed_) std::exchange(on_closed_, nullptr)();
  });
}

}  // namespace drakkar::storage
