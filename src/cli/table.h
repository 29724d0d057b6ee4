#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"

namespace drakkar::cli {

struct TableOptions {
  bool wide = false;
  bool no_headers = false;
  bool with_namespace = false;  // add a first column with the object's namespace
  bool show_labels = false;     // add a last column with the object's labels
  std::string name_prefix;      // prefix for names: "pod/"
};

// Prints meta/v1 Tables. Columns never shrink, so that rows from a watch stay aligned with those of
// the list before.
class TablePrinter {
 public:
  explicit TablePrinter(TableOptions options) : options_(std::move(options)) {}

  // Prints the rows of a table, in the given order if there is one, with headers before the first
  // rows. Later tables may omit their column definitions.
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

// Lays cells out in columns separated by three spaces, without trailing spaces. `widths` holds the
// column widths so far and grows.
std::string LayOut(const std::vector<std::vector<std::string>>& rows,
                   std::vector<std::size_t>& widths);

// "a=1,b=2", or "<none>".
std::string LabelText(api::Value labels);

}  // namespace drakkar::cli
