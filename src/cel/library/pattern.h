#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace drakkar::cel::library {

// A compiled regular expression in Go's syntax. Linear in the length of the text. Compiling and
// matching are charged to the work budget.
class Pattern {
 public:
  // Null if the text is no regular expression, or if it takes too long; `why` then says so.
  static std::unique_ptr<Pattern> Compile(std::string_view text, std::string* why = nullptr);
  virtual ~Pattern() = default;
  // Whether some part of the text matches; nullopt if that takes too long.
  virtual std::optional<bool> Matches(std::string_view text) const = 0;
  // Roughly what it holds in memory.
  virtual std::size_t size_bytes() const = 0;
};

}  // namespace drakkar::cel::library
