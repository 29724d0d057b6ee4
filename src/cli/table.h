#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::cli {

struct TableOptions {
  bool wide = false;
  bool no_headers = false;
  bool with_namespace = false;  // a first column with the object's namespace
  bool show_labels = false;     // a last column with the object's labels
  std::string name_prefix;      // "pod/": put before names
};

// Prints meta/v1 Tables: columns as wide as what came so far, so that the rows of a watch stay in
// line with those of the list before.
class TablePrinter {
 public:
  explicit TablePrinter(TableOptions options) : options_(std::move(options)) {}

  // The rows of a table, in the given order if there is one; headers before the first ones. Later
  // tables may leave their column definitions out.
  std::string Print(api::Value table, const std::vector<std::size_t>& order = {});

 private:
  struct Column {
    std::string name;
    std::size_t cell = 0;
    bool is_name = false;
  };

  TableOptions options_;
  std::vector<Column> columns_;
  std::vector<std::size_t> widths_;
  bool printed_headers_ = false;
};

// Rows of cells in columns, three spaces between them; nothing follows the last cell of a row.
// `widths` has what columns have been so far, and grows.
std::string LayOut(const std::vector<std::vector<std::string>>& rows,
                   std::vector<std::size_t>& widths);

// "a=1,b=2", or "<none>".
std::string LabelText(api::Value labels);

}  // namespace drakkar::cli
