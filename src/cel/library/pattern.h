#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace drakkar::cel::library {

// A compiled regular expression in Go's syntax. Linear in the length of the text.
class Pattern {
 public:
  // Null if the text is no regular expression; `why` then says so.
  static std::unique_ptr<Pattern> Compile(std::string_view text, std::string* why = nullptr);
  virtual ~Pattern() = default;
  // Whether some part of the text matches.
  virtual bool Matches(std::string_view text) const = 0;
};

}  // namespace drakkar::cel::library
