#include "answers/render/columns.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::answers {
namespace {

constexpr std::size_t kGap = 2;
// Names are not shortened further than this; they would become useless.
constexpr std::size_t kMinShrunk = 10;
constexpr std::string_view kEllipsis = "…";

bool IsContinuation(char c) {
  return (c & 0xC0) == 0x80;
}

}  // namespace

std::size_t DisplayWidth(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !IsContinuation(c); }));
}

std::string CutMiddle(std::string_view text, std::size_t width) {
  const std::size_t length = DisplayWidth(text);
  if (length <= width) return std::string(text);
  if (width <= 1) return width == 0 ? std::string() : std::string(kEllipsis);
  const std::size_t tail = (width - 1) / 2;
  const std::size_t head = width - 1 - tail;
  std::string out;
  std::size_t at = 0;
  for (const char c : text) {
    if (!IsContinuation(c)) ++at;
    if (at == head + 1 && !IsContinuation(c)) out += kEllipsis;
    if (at <= head || at > length - tail) out += c;
  }
  return out;
}

std::string Wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  for (const std::string_view word : Split(text, ' ')) {
    if (word.empty()) continue;
    const std::size_t length = DisplayWidth(word);
    if (column > 0 && (width == 0 || column + 1 + length <= width)) {
      out += ' ';
      column += 1;
    } else if (column > 0) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    }
    out += word;
    column += length;
  }
  out += '\n';
  return out;
}

std::string WrapTree(std::string_view text, std::size_t width) {
  constexpr std::string_view kBranch = "├─";
  constexpr std::string_view kLast = "└─";
  constexpr std::string_view kTrunk = "│";
  constexpr std::size_t kLeast = 20;  // however deep the tree
  std::string out;
  for (std::string_view line : Split(text, '\n')) {
    std::string first, next;  // the branches before the text, and those below them
    for (bool more = true; more;) {
      const auto take = [&](std::string_view sign, std::string_view below) {
        if (!line.starts_with(sign)) return false;
        first += sign;
        next += below;
        line.remove_prefix(sign.size());
        return true;
      };
      more = take(kBranch, StrCat(kTrunk, " ")) || take(kLast, "  ") || take(kTrunk, kTrunk) ||
             take(" ", " ");
    }
    const std::size_t indent = DisplayWidth(first);
    const std::size_t left = width == 0 ? 0 : std::max(kLeast, width > indent ? width - indent : 0);
    const std::string lines = Wrap(line, left, 2);
    std::string_view wrapped = lines;
    for (bool is_first = true; !wrapped.empty(); is_first = false) {
      const std::size_t end = wrapped.find('\n');
      out += StrCat(is_first ? first : next, wrapped.substr(0, end), "\n");
      wrapped.remove_prefix(end + 1);
    }
  }
  return out;
}

std::string TextTable::Render(std::size_t width, bool headers,
                              std::vector<std::size_t>* known) const {
  std::vector<std::size_t> widths(columns_.size());
  if (known != nullptr && known->size() == widths.size()) widths = *known;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (headers) widths[i] = std::max(widths[i], DisplayWidth(columns_[i].title));
    for (const auto& row : rows_) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  const auto total = [&] {
    std::size_t sum = kGap * (widths.empty() ? 0 : widths.size() - 1);
    for (const std::size_t each : widths) sum += each;
    return sum;
  };
  while (width > 0 && total() > width) {
    std::size_t widest = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::size_t least = std::max(kMinShrunk, DisplayWidth(columns_[i].title));
      if (!columns_[i].shrinkable || widths[i] <= least) continue;
      if (widest == columns_.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == columns_.size()) break;
    --widths[widest];
  }
  if (known != nullptr) *known = widths;
  std::string out;
  const auto add = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string cell = CutMiddle(cells[i], widths[i]);
      const std::size_t padding = widths[i] - DisplayWidth(cell);
      const bool last = i + 1 == cells.size();
      if (columns_[i].right) out.append(padding, ' ');
      out += cell;
      if (last) continue;
      if (!columns_[i].right) out.append(padding, ' ');
      out.append(kGap, ' ');
    }
    while (out.ends_with(' ')) out.pop_back();  // the last cells may be empty
    out += '\n';
  };
  if (headers) {
    std::vector<std::string> titles;
    for (const Column& column : columns_) titles.push_back(column.title);
    add(titles);
  }
  for (const auto& row : rows_) add(row);
  return out;
}

}  // namespace drakkar::answers
