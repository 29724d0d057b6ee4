#include "node/pods/environment_file.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

bool IsBlank(char c) {
  return c == ' ' || c == '\t';
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  Result<std::optional<std::string>> Find(std::string_view wanted) {
    for (; at_ < text_.size(); SkipLine()) {
      SkipBlanks();
      if (Peek() == '#' || Peek() == '\n' || Peek() == '\0') continue;
      ASSIGN_OR_RETURN(const std::string_view name, Name());
      ASSIGN_OR_RETURN(const std::string_view value, Value());
      if (name != wanted) continue;
      if (value.empty()) return std::optional<std::string>();
      return std::optional<std::string>(value);
    }
    return std::optional<std::string>();
  }

 private:
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void SkipBlanks() {
    while (IsBlank(Peek())) ++at_;
  }
  void SkipLine() { at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1; }
  std::string_view Until(std::size_t end) const { return text_.substr(at_, end - at_); }

  Result<std::string_view> Name() {
    const std::size_t line = std::min(text_.find('\n', at_), text_.size());
    const std::size_t end = text_.find('=', at_);
    if (end >= line) return Bad("has no '='");
    const std::string_view name = Until(end);
    if (name.empty()) return Bad("has no name before '='");
    if (IsBlank(name.back())) return Bad("has a space before '='");
    at_ = end + 1;
    return name;
  }

  // After it, the rest of the line holds nothing or a comment. As in a shell, a space after '='
  // makes the value empty.
  Result<std::string_view> Value() {
    if (IsBlank(Peek())) return std::string_view();
    if (Peek() != '\'') return Bad("has a value without single quotes");
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) return Bad("begins a value that does not end");
    ++at_;
    const std::string_view value = Until(end);
    at_ = end + 1;
    SkipBlanks();
    if (Peek() != '#' && Peek() != '\n' && Peek() != '\0') return Bad("has text after its value");
    return value;
  }

  Error Bad(std::string_view why) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<long>(at_), '\n');
    return InvalidArgument(StrCat("line ", line, " ", why));
  }

  const std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::optional<std::string>> FindVariable(std::string_view text, std::string_view name) {
  return Scanner(text).Find(name);
}

}  // namespace drakkar::node
