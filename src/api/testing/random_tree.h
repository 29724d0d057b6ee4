#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "api/tree/draft.h"

namespace drakkar::api {

// Random values for property tests: every kind but raw, names from the schema and others, texts
// with quotes, controls and non-ASCII characters. The same seed gives the same value.
class RandomTree {
 public:
  explicit RandomTree(std::uint64_t seed) : random_(seed) {}

  Draft Make(int depth = 5) {
    switch (Below(depth > 0 ? 9 : 6)) {
      case 0:
        return nullptr;
      case 1:
        return Below(2) == 0;
      case 2:
        return static_cast<std::int64_t>(random_()) >> Below(64);
      case 3:
        return static_cast<double>(static_cast<std::int64_t>(random_())) / 1024.0;
      case 4:
      case 5:
        return Text();
      case 6: {
        Draft array = Draft::Array();
        for (std::uint64_t i = Below(5); i > 0; --i) array.Append(Make(depth - 1));
        return array;
      }
      default: {
        Draft object = Draft::Object();
        for (std::uint64_t i = Below(6); i > 0; --i) object.Entry(Text()) = Make(depth - 1);
        return object;
      }
    }
  }

  std::string Text() {
    static constexpr const char* kParts[] = {
        "spec",         "name", "a",    "",     " ",         "yes",  "1", "-",
        ": ",           "#",    "\n",   "\"",   "\\",        "\x01", "é", "<&>",
        "\xE2\x80\xA8", "😀",   "null", "~",    "0x10",      "1e3",  "|", "  ",
        "\t",           "'",    "- x",  "\x7f", "2001-01-01"};
    std::string text;
    for (std::uint64_t i = Below(4); i > 0; --i) text += kParts[Below(std::size(kParts))];
    return text;
  }

  std::uint64_t Below(std::uint64_t bound) { return random_() % bound; }

 private:
  std::mt19937_64 random_;
};

}  // namespace drakkar::api
