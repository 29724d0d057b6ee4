#include "base/ids/uuid.h"

#include <cstdint>

namespace drakkar {

std::string NewUuid(Random& random) {
  std::uint64_t high = (random.Next() & ~0xf000ull) | 0x4000ull;
  std::uint64_t low = (random.Next() & 0x3fffffffffffffffull) | 0x8000000000000000ull;
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  text.reserve(36);
  for (int i = 0; i < 32; ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) text += '-';
    const std::uint64_t word = i < 16 ? high : low;
    text += kHex[(word >> (60 - 4 * (i % 16))) & 0xf];
  }
  return text;
}

bool IsUuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (c != '-') return false;
    } else if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
      return false;
    }
  }
  return true;
}

}  // namespace drakkar
