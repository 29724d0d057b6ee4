#include "api/tree/key_table.h"

#include <bit>
#include <cstring>
#include <vector>

namespace drakkar::api {
namespace {

// Names are short: their first and last eight bytes and their length tell nearly all apart.
std::uint64_t HashName(std::string_view text) {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  const std::size_t size = text.size();
  if (size >= 8) {
    std::memcpy(&first, text.data(), 8);
    std::memcpy(&last, text.data() + size - 8, 8);
  } else if (size >= 4) {
    std::memcpy(&first, text.data(), 4);
    std::memcpy(&last, text.data() + size - 4, 4);
  } else if (size > 0) {
    first = static_cast<unsigned char>(text[0]);
    last = static_cast<std::uint64_t>(static_cast<unsigned char>(text[size / 2])) << 8 |
           static_cast<unsigned char>(text[size - 1]);
  }
  std::uint64_t hash = (first ^ (last * 0x9E3779B97F4A7C15u)) + size;
  hash *= 0xD6E8FEB86659FD93u;
  return hash ^ (hash >> 32);
}

// Open addressing at most a quarter full, built when the first name is looked up.
struct Index {
  std::span<const Key> keys = SchemaKeys();
  std::vector<std::uint32_t> slots;
  std::uint64_t mask;

  Index() {
    const std::size_t size = std::bit_ceil(keys.size() * 4);
    slots.assign(size, 0);
    mask = size - 1;
    for (std::uint32_t id = 1; id < keys.size(); ++id) {
      std::uint64_t slot = HashName(keys[id].view()) & mask;
      while (slots[slot] != 0) slot = (slot + 1) & mask;
      slots[slot] = id;
    }
  }
};

}  // namespace

const Key* FindKey(std::string_view text) {
  static const Index index;
  std::uint64_t slot = HashName(text) & index.mask;
  while (index.slots[slot] != 0) {
    const Key& key = index.keys[index.slots[slot]];
    if (key.view() == text) return &key;
    slot = (slot + 1) & index.mask;
  }
  return nullptr;
}

}  // namespace drakkar::api
