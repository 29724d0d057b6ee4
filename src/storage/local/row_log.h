#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "storage/local/row.h"

namespace drakkar::storage {

struct RowLogStatistics {
  std::uint64_t commits = 0;
  std::uint64_t syncs = 0;
  std::uint64_t bytes_written = 0;
  std::string file_system;
};

// Where rows become durable: the only part in which the embedded engines differ.
//
// Guarantees: batches become durable in the order appended, each whole or not at all. After the
// first failure nothing more is written. All calls and callbacks on the store's loop; callbacks
// never run inside a call, and none runs after the log is destroyed.
class RowLog {
 public:
  struct Listener {
    std::function<void(Revision up_to)> on_durable;
    std::function<void(Error)> on_failed;  // once; nothing becomes durable afterwards
  };

  virtual ~RowLog() = default;

  // Called once, before anything else.
  virtual void Start(Listener listener) = 0;

  virtual void Append(RowBatch batch) = 0;

  // Values of durable rows (null for deletions), in the order asked; rows removed by batches
  // appended later are still found. kDataLoss when a row is missing.
  virtual void Read(std::vector<RowId> rows,
                    std::function<void(Result<std::vector<Bytes>>)> done) = 0;

  // Makes everything appended durable (unless it failed), then closes the files.
  virtual void Close(std::function<void()> done) = 0;

  // What was appended and is not durable yet. The store refuses writes above its bound.
  virtual std::size_t queued_bytes() const = 0;

  virtual RowLogStatistics statistics() const = 0;
};

}  // namespace drakkar::storage
