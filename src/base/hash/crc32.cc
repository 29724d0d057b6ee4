#include "base/hash/crc32.h"

#include <array>

namespace drakkar {
namespace {

// Eight bytes are processed at a time, each through a table of its own.
constexpr std::size_t kStride = 8;
using Tables = std::array<std::array<std::uint32_t, 256>, kStride>;

constexpr Tables MakeTables() {
  Tables tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1) ? 0xedb88320u ^ (value >> 1) : value >> 1;
    tables[0][i] = value;
  }
  for (std::uint32_t i = 0; i < 256; ++i) {
    for (std::size_t table = 1; table < kStride; ++table) {
      const std::uint32_t before = tables[table - 1][i];
      tables[table][i] = tables[0][before & 0xff] ^ (before >> 8);
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

constexpr std::uint32_t LittleEndian(const unsigned char* bytes) {
  return static_cast<std::uint32_t>(bytes[0]) | static_cast<std::uint32_t>(bytes[1]) << 8 |
         static_cast<std::uint32_t>(bytes[2]) << 16 | static_cast<std::uint32_t>(bytes[3]) << 24;
}

}  // namespace

std::uint32_t Crc32(std::string_view bytes, std::uint32_t of_prefix) {
  std::uint32_t crc = ~of_prefix;
  const auto* next = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  for (; left >= kStride; left -= kStride, next += kStride) {
    const std::uint32_t low = LittleEndian(next) ^ crc;
    const std::uint32_t high = LittleEndian(next + 4);
    crc = kTables[7][low & 0xff] ^ kTables[6][(low >> 8) & 0xff] ^ kTables[5][(low >> 16) & 0xff] ^
          kTables[4][low >> 24] ^ kTables[3][high & 0xff] ^ kTables[2][(high >> 8) & 0xff] ^
          kTables[1][(high >> 16) & 0xff] ^ kTables[0][high >> 24];
  }
  for (; left > 0; --left, ++next) crc = kTables[0][(crc ^ *next) & 0xff] ^ (crc >> 8);
  return ~crc;
}

std::uint64_t Fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (char c : bytes) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace drakkar
