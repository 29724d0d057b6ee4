#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drakkar::answers {

// The width everything is made to fit unless the reader's terminal is wider.
inline constexpr std::size_t kTextWidth = 80;

struct Column {
  std::string title;
  bool right = false;       // numbers
  bool shrinkable = false;  // names that may be cut in the middle when the table is too wide
};

// Rows of cells in columns, two spaces apart, nothing after the last cell of a row.
class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }

  // At most `width` columns wide as far as the shrinkable columns allow; 0: as wide as it gets.
  // `widths` has what columns have been so far and grows, so that tables that follow each other
  // stay in line; null: this one stands alone.
  std::string Render(std::size_t width, bool headers = true,
                     std::vector<std::size_t>* widths = nullptr) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// How many columns of a terminal a text takes, roughly: one for each code point.
std::size_t DisplayWidth(std::string_view text);

// `text` in at most `width` columns: its beginning and its end, with an ellipsis between them.
std::string CutMiddle(std::string_view text, std::size_t width);

// Lines of at most `width` columns, broken between words; all but the first begin with `indent`
// spaces. Ends with a line feed.
std::string Wrap(std::string_view text, std::size_t width, std::size_t indent = 0);

}  // namespace drakkar::answers
