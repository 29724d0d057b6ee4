#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drakkar::answers {

// Width of all output unless the terminal is wider.
inline constexpr std::size_t kTextWidth = 80;

struct Column {
  std::string title;
  bool right = false;       // right-aligned, for numbers
  bool shrinkable = false;  // names that may be shortened in the middle if the table is too wide
};

// A table with columns two spaces apart, without trailing spaces.
class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }

  // Fits the table into `width` columns if shrinking the shrinkable columns suffices; 0: no limit.
  // `widths` holds the column widths so far and grows, so that consecutive tables stay aligned;
  // null for a single table.
  std::string Render(std::size_t width, bool headers = true,
                     std::vector<std::size_t>* widths = nullptr) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Approximate number of terminal columns of a text: one per code point.
std::size_t DisplayWidth(std::string_view text);

// `text` in at most `width` columns: its start and its end, with an ellipsis in between.
std::string CutMiddle(std::string_view text, std::size_t width);

// Lines of at most `width` columns, broken between words; all but the first begin with `indent`
// spaces. Ends with a line feed.
std::string Wrap(std::string_view text, std::size_t width, std::size_t indent = 0);

// Wraps the lines of a tree drawn with box characters; the branches continue on the new lines.
std::string WrapTree(std::string_view text, std::size_t width);

}  // namespace drakkar::answers
