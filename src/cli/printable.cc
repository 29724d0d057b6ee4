#include "cli/printable.h"

#include <algorithm>

namespace drakkar::cli {
namespace {

bool IsControl(unsigned char c) {
  return (c < 0x20 && c != '\n') || c == 0x7f;
}

// The second byte of U+0080 to U+009F in UTF-8, which some terminals take for control characters.
bool IsC1(std::string_view text, std::size_t at) {
  return at + 1 < text.size() && static_cast<unsigned char>(text[at]) == 0xc2 &&
         static_cast<unsigned char>(text[at + 1]) >= 0x80 &&
         static_cast<unsigned char>(text[at + 1]) < 0xa0;
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (IsControl(c)) {
      shown += '^';
      shown += static_cast<char>(c ^ 0x40);
    } else if (IsC1(text, i)) {
      shown += '?';
      ++i;
    } else {
      shown += text[i];
    }
  }
  return shown;
}

}  // namespace drakkar::cli
