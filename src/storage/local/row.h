#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/store.h"

namespace drakkar::storage {

// Names one row of the log: the revision and the place within its transaction. Rises with time.
using RowId = std::int64_t;

constexpr int kRowPositionBits = 16;
// More operations in one transaction are refused: the place would not fit into the row's id.
constexpr std::size_t kMaxOperationsPerTransaction = (std::size_t{1} << kRowPositionBits) - 1;

constexpr RowId MakeRowId(Revision revision, std::size_t position) {
  return (revision << kRowPositionBits) | static_cast<RowId>(position);
}
constexpr Revision RowRevision(RowId row) {
  return row >> kRowPositionBits;
}

// One change of one key. Rows are only ever appended, and removed once compacted.
struct Row {
  RowId id = 0;
  Revision create_revision = 0;  // of the key's life this row belongs to
  std::string key;
  Bytes value;  // null: the key was deleted
};

// What one transaction gives to the log: its rows, and what compaction forgets on the way.
struct RowBatch {
  std::vector<Row> rows;       // empty when only compaction has something to say
  std::vector<RowId> removed;  // superseded rows, all durable
  Revision compacted = 0;      // 0: unchanged
};

}  // namespace drakkar::storage
