#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result/result.h"
#include "storage/local/row.h"

namespace drakkar::storage {

struct Salvaged {
  std::uint64_t pages = 0;
  std::uint64_t damaged_pages = 0;  // of the table, as far as they can be told
  Revision compacted = 0;           // 0 if it was not found
};

// Reads the rows of a store file whose structure is damaged: from every page that still looks like
// a part of the table, whether the rest of the file leads to it or not. `file` and `log` are the
// contents of store.db and its write-ahead log, of which committed frames count. Calls `row` with
// each row that matches its checksum, in no order and possibly more than once.
Salvaged SalvageRows(std::string_view file, std::string_view log,
                     const std::function<void(Row row)>& row);

}  // namespace drakkar::storage
