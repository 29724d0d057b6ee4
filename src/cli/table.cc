#include "cli/table.h"

#include <algorithm>

#include "base/text/text.h"
#include "cli/jsonpath.h"
#include "cli/printable.h"

namespace drakkar::cli {
namespace {

using api::Value;

constexpr std::size_t kColumnGap = 3;

// The approximate width of a text on a terminal: one column per code point.
std::size_t DisplayWidth(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string CellText(Value cell) {
  if (!cell.has_value()) return "<none>";
  std::string text = PlainText(cell);
  // A cell is a single line.
  if (const std::size_t end = text.find_first_of("\r\n"); end != std::string::npos) {
    text = text.substr(0, end) + "...";
  }
  return text;
}

std::string ToUpper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

}  // namespace

std::string LabelText(Value labels) {
  std::vector<std::string> parts;
  for (const auto& member : labels.members()) {
    parts.push_back(StrCat(member.name, "=", member.value.str()));
  }
  std::ranges::sort(parts);
  return parts.empty() ? "<none>" : Join(parts, ",");
}

std::string LayOut(const std::vector<std::vector<std::string>>& given,
                   std::vector<std::size_t>& widths) {
  std::vector<std::vector<std::string>> rows = given;
  for (auto& row : rows) {
    for (std::string& cell : row) cell = Printable(cell);
  }
  for (const auto& row : rows) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    }
  }
  std::string out;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out.append(widths[i] - DisplayWidth(row[i]) + kColumnGap, ' ');
    }
    out += '\n';
  }
  return out;
}

std::string TablePrinter::Print(Value table, const std::vector<std::size_t>& order) {
  if (!table["columnDefinitions"].empty()) {
    columns_.clear();
    std::size_t cell = 0;
    for (Value definition : table["columnDefinitions"].elements()) {
      if (options_.wide || definition["priority"].integer() == 0) {
        columns_.push_back(
            {ToUpper(definition["name"].str()), cell, definition["format"].str() == "name"});
      }
      ++cell;
    }
  }
  std::vector<std::vector<std::string>> rows;
  const Value table_rows = table["rows"];
  if (!printed_headers_ && !options_.no_headers && !table_rows.empty()) {
    printed_headers_ = true;
    std::vector<std::string> row;
    if (options_.with_namespace) row.push_back("NAMESPACE");
    for (const Column& column : columns_) row.push_back(column.name);
    if (options_.show_labels) row.push_back("LABELS");
    rows.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < table_rows.size(); ++i) {
    const Value source = table_rows.at(order.empty() ? i : order[i]);
    std::vector<std::string> row;
    const Value metadata = source["object"]["metadata"];
    if (options_.with_namespace) row.emplace_back(metadata["namespace"].str());
    for (const Column& column : columns_) {
      std::string text = CellText(source["cells"].at(column.cell));
      row.push_back(column.is_name ? options_.name_prefix + text : text);
    }
    if (options_.show_labels) row.push_back(LabelText(metadata["labels"]));
    rows.push_back(std::move(row));
  }
  return LayOut(rows, widths_);
}

}  // namespace drakkar::cli
