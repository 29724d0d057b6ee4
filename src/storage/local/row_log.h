#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "storage/local/row.h"

namespace drakkar::storage {

struct RowLogStatistics {
  std::uint64_t commits = 0;
  std::uint64_t syncs = 0;
  std::uint64_t bytes_written = 0;
  std::string file_system;
};

// Makes rows durable. This is the only part in which the embedded engines differ.
//
// Guarantees: batches become durable in the order in which they were appended, each completely or
// not at all. After the first failure nothing more is written. All calls and callbacks run on the
// store's loop. Callbacks never run inside a call, and none runs after the log is destroyed.
class RowLog {
 public:
  struct Listener {
    std::function<void(Revision up_to)> on_durable;
    std::function<void(Error)> on_failed;  // runs once; nothing becomes durable afterwards
    // The disk is full (with the error), or has space again (without). `stalled`: what was appended
    // does not become durable until then; otherwise there is just no room for much more.
    std::function<void(std::optional<Error> full, bool stalled)> on_space = {};
  };

  virtual ~RowLog() = default;

  // Must be called once, before any other method.
  virtual void Start(Listener listener) = 0;

  virtual void Append(RowBatch batch) = 0;

  // Returns the values of durable rows (null for deletions) in the order of `rows`. Rows that later
  // batches remove are still found. Fails with kDataLoss if a row is missing.
  virtual void Read(std::vector<RowId> rows,
                    std::function<void(Result<std::vector<Bytes>>)> done) = 0;

  // Reads rows after `after`, about `max_bytes` of them, and compares them with their checksums.
  struct Slice {
    std::uint64_t rows = 0;
    std::uint64_t bytes = 0;
    std::vector<UnreadableEntry> damaged;
    RowId last = 0;  // 0: there are no more rows
  };
  virtual void Verify(RowId /*after*/, std::size_t /*max_bytes*/,
                      std::function<void(Result<Slice>)> done) {
    done(Error{ErrorCode::kUnimplemented, "this store has no checksums"});
  }

  // Makes everything appended so far durable (unless the log has failed), then closes the files.
  virtual void Close(std::function<void()> done) = 0;

  // Bytes that were appended but are not durable yet. The store refuses writes above its limit.
  virtual std::size_t queued_bytes() const = 0;

  virtual RowLogStatistics statistics() const = 0;
};

}  // namespace drakkar::storage
