// Made by tools/apigen from schema/.
#include "api/field_names.h"

#include <cstring>
#include <span>

#include "api/tree/key_table.h"

namespace drakkar::api {
namespace generated {
constinit const Key kKeys[kFieldNameCount] = {
    {0, 0, ""},
    {1, 4, "Port"},
    {2, 10, "apiVersion"},
    {3, 8, "arrivals"},
    {4, 2, "at"},
    {5, 5, "berth"},
    {6, 6, "counts"},
    {7, 4, "crew"},
    {8, 6, "crewed"},
    {9, 7, "harbour"},
    {10, 4, "home"},
    {11, 5, "items"},
    {12, 4, "kind"},
    {13, 6, "labels"},
    {14, 9, "mastCount"},
    {15, 8, "metadata"},
    {16, 4, "name"},
    {17, 9, "namespace"},
    {18, 4, "oars"},
    {19, 7, "options"},
    {20, 6, "podIPs"},
    {21, 4, "port"},
    {22, 5, "ports"},
    {23, 4, "rank"},
    {24, 4, "sail"},
    {25, 8, "selector"},
    {26, 4, "spec"},
    {27, 6, "status"},
    {28, 6, "stores"},
    {29, 10, "tide-table"},
    {30, 5, "value"},
};
}  // namespace generated

namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the hash is computed at build time");

struct Slot {
  std::uint16_t index;  // in kKeys, 0: free
  std::uint16_t tag;    // high bits of the hash
};

constexpr std::size_t kSlotCount = 128;
constexpr Slot kSlots[kSlotCount] = {
  {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 15762}, {0, 0}, {0, 0},
  {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {8, 26110}, {29, 26808},
  {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {25, 31014}, {0, 0},
  {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0},
  {0, 0}, {0, 0}, {0, 0}, {0, 0}, {11, 15852}, {0, 0}, {0, 0}, {0, 0},
  {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {20, 47477}, {22, 3703},
  {0, 0}, {0, 0}, {0, 0}, {12, 59840}, {0, 0}, {0, 0}, {0, 0}, {0, 0},
  {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0},
  {0, 0}, {0, 0}, {28, 31830}, {21, 40977}, {26, 9517}, {0, 0}, {0, 0}, {0, 0},
  {0, 0}, {0, 0}, {0, 0}, {14, 37759}, {4, 12286}, {0, 0}, {0, 0}, {0, 0},
  {0, 0}, {30, 39706}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {27, 3341}, {0, 0},
  {0, 0}, {0, 0}, {0, 0}, {0, 0}, {17, 29069}, {0, 0}, {0, 0}, {10, 51750},
  {0, 0}, {18, 27871}, {0, 0}, {6, 39717}, {2, 46867}, {0, 0}, {5, 31144}, {7, 3011},
  {23, 40275}, {19, 19864}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0},
  {0, 0}, {0, 0}, {24, 63276}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {3, 42215},
  {9, 46352}, {16, 5333}, {0, 0}, {0, 0}, {0, 0}, {13, 31042}, {15, 15029}, {0, 0},
};

template <typename T>
std::uint64_t Load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// Reads at most 16 bytes of a name: both ends and the length tell schema names apart.
std::uint64_t HashName(const char* text, std::size_t size) {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  if (size >= 8) {
    a = Load<std::uint64_t>(text);
    b = Load<std::uint64_t>(text + size - 8);
  } else if (size >= 4) {
    a = Load<std::uint32_t>(text);
    b = Load<std::uint32_t>(text + size - 4);
  } else if (size > 0) {
    a = Load<std::uint8_t>(text) | Load<std::uint8_t>(text + size / 2) << 8 |
        Load<std::uint8_t>(text + size - 1) << 16;
  }
  std::uint64_t h = (a ^ size) * 0x9E3779B97F4A7C15ULL;
  h ^= h >> 32;
  h = (h ^ b) * 0xC2B2AE3D27D4EB4FULL;
  return h ^ (h >> 29);
}

}  // namespace

std::span<const Key> SchemaKeys() { return generated::kKeys; }

const Key* FindKey(std::string_view text) {
  const std::uint64_t h = HashName(text.data(), text.size());
  const auto tag = static_cast<std::uint16_t>(h >> 48);
  for (std::size_t at = h & (kSlotCount - 1); kSlots[at].index != 0;
       at = (at + 1) & (kSlotCount - 1)) {
    if (kSlots[at].tag != tag) continue;
    const Key& key = generated::kKeys[kSlots[at].index];
    if (key.size == text.size() && std::memcmp(key.text, text.data(), text.size()) == 0) {
      return &key;
    }
  }
  return nullptr;
}

}  // namespace drakkar::api
