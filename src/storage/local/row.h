#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/store.h"

namespace drakkar::storage {

// Identifies one row of the log: the revision and the position within its transaction. Later rows
// have greater ids.
using RowId = std::int64_t;

constexpr int kRowPositionBits = 16;
// Larger transactions are refused: the position would not fit into the row's id.
constexpr std::size_t kMaxOperationsPerTransaction = (std::size_t{1} << kRowPositionBits) - 1;

constexpr RowId MakeRowId(Revision revision, std::size_t position) {
  return (revision << kRowPositionBits) | static_cast<RowId>(position);
}
constexpr Revision RowRevision(RowId row) {
  return row >> kRowPositionBits;
}

// One change of one key. Rows are appended, never modified, and removed after compaction.
struct Row {
  RowId id = 0;
  Revision create_revision = 0;  // when the key was last created
  std::string key;
  Bytes value;  // null: the key was deleted, or the row is damaged
  // What was read does not match the row's checksum: the key exists, but its state is unknown.
  bool damaged = false;
};

// What one transaction writes to the log: its rows, and the rows that compaction removes with it.
struct RowBatch {
  std::vector<Row> rows;       // empty for a batch that only compacts
  std::vector<RowId> removed;  // superseded rows, all durable
  Revision compacted = 0;      // 0: unchanged
};

}  // namespace drakkar::storage
