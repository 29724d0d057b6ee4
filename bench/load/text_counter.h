#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace drakkar::load {

// Counts the occurrences of a text in a stream of bytes, however it is split. The text must not
// overlap itself.
class TextCounter {
 public:
  explicit TextCounter(std::string_view text) : text_(text) {}
  void Feed(std::string_view bytes);
  std::size_t count() const { return count_; }

 private:
  void Count(std::string_view bytes);

  std::string text_;
  std::string tail_;  // the last bytes seen, one fewer than the text has
  std::size_t count_ = 0;
};

}  // namespace drakkar::load
