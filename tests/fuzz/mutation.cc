#include "tests/fuzz/mutation.h"

#include <algorithm>
#include <string_view>

namespace drakkar::fuzz {
namespace {

// Limits the size of a result.
constexpr std::size_t kMaxBytes = 64u << 10;
constexpr std::size_t kMaxPiece = 64;

// Tokens that readers often mishandle.
constexpr std::string_view kWords[] = {"-1",
                                       "0",
                                       "9223372036854775807",
                                       "-9223372036854775808",
                                       "18446744073709551616",
                                       "1e999",
                                       "null",
                                       "true",
                                       "\"\"",
                                       "{}",
                                       "[]",
                                       "[[[[[[[[",
                                       "{\"",
                                       "\\u0000",
                                       "\\ud800",
                                       "\xff",
                                       "\xc3\x28",
                                       "%00",
                                       "../",
                                       "\r\n",
                                       "\n",
                                       ",",
                                       ":"};

std::size_t Below(Random& random, std::size_t bound) {
  return static_cast<std::size_t>(random.Below(bound));
}

std::string_view Piece(std::string_view text, Random& random) {
  if (text.empty()) return text;
  const std::size_t begin = Below(random, text.size());
  return text.substr(begin, 1 + Below(random, kMaxPiece));
}

void Change(std::string& text, const std::vector<std::string>& seeds, Random& random) {
  const std::size_t at = Below(random, text.size() + 1);
  switch (Below(random, 8)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << Below(random, 8)));
      break;
    case 1:
      if (at < text.size()) text[at] = static_cast<char>(Below(random, 256));
      break;
    case 2:
      text.insert(at, 1, static_cast<char>(Below(random, 256)));
      break;
    case 3:
      text.erase(at, 1 + Below(random, kMaxPiece));
      break;
    case 4:
      text.insert(at, std::string(Piece(text, random)));
      break;
    case 5:
      text.insert(at, kWords[Below(random, std::size(kWords))]);
      break;
    case 6:
      text.insert(at, Piece(seeds[Below(random, seeds.size())], random));
      break;
    case 7:
      text.resize(at);
      break;
  }
  if (text.size() > kMaxBytes) text.resize(kMaxBytes);
}

}  // namespace

std::string Mutate(const std::vector<std::string>& seeds, Random& random) {
  std::string text = seeds[Below(random, seeds.size())];
  for (std::size_t changes = 1 + Below(random, 4); changes > 0; --changes)
    Change(text, seeds, random);
  return text;
}

}  // namespace drakkar::fuzz
