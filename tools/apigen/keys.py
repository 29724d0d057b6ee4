"""field_names.h and field_names.cc: the table of names that the compiler checks literals against, and the
hash table that finds them by text at run time."""

MASK = (1 << 64) - 1
# The same constants and steps as HashName in the template below.
K0, K1 = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F


def cpp_string(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def hash_name(text):
    data = text.encode()
    size = len(data)

    def load(begin, count):
        return int.from_bytes(data[begin:begin + count], "little")

    if size >= 8:
        a, b = load(0, 8), load(size - 8, 8)
    elif size >= 4:
        a, b = load(0, 4), load(size - 4, 4)
    elif size > 0:
        a, b = data[0] | data[size // 2] << 8 | data[size - 1] << 16, 0
    else:
        a, b = 0, 0
    h = ((a ^ size) * K0) & MASK
    h ^= h >> 32
    h = ((h ^ b) * K1) & MASK
    return h ^ (h >> 29)


def key_names(schema):
    return sorted({f.name for s in schema.structs() for f in s.fields} | set(schema.document_names))


def key_table(schema):
    """name -> id, from 1"""
    return {name: index for index, name in enumerate(key_names(schema), 1)}


def slots_of(names):
    size = 64
    while size < 3 * len(names):
        size *= 2
    slots = [(0, 0)] * size
    for index, name in enumerate(names, 1):
        h = hash_name(name)
        at = h & (size - 1)
        while slots[at][0]:
            at = (at + 1) & (size - 1)
        slots[at] = (index, h >> 48)
    return slots


HEADER = """\
// Made by tools/apigen from schema/.
#pragma once

#include <cstddef>

#include "api/tree/key.h"

namespace drakkar::api::generated {

// Entry 0 is no name; the others are sorted. Only the compiler reads the texts.
inline constexpr std::size_t kFieldNameCount = %(count)d;
inline constexpr const char* kFieldNames[kFieldNameCount] = {
    "",
%(names)s
};
extern const Key kKeys[kFieldNameCount];

}  // namespace drakkar::api::generated
"""

SOURCE = """\
// Made by tools/apigen from schema/.
#include "api/field_names.h"

#include <cstring>
#include <span>

#include "api/tree/key_table.h"

namespace drakkar::api {
namespace generated {
constinit const Key kKeys[kFieldNameCount] = {
%(keys)s
};
}  // namespace generated

namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the hash is computed at build time");

struct Slot {
  std::uint16_t index;  // in kKeys, 0: free
  std::uint16_t tag;    // high bits of the hash
};

constexpr std::size_t kSlotCount = %(slot_count)d;
constexpr Slot kSlots[kSlotCount] = {
%(slots)s
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
  std::uint64_t h = (a ^ size) * 0x%(k0)XULL;
  h ^= h >> 32;
  h = (h ^ b) * 0x%(k1)XULL;
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
"""


def wrap(items, per_line):
    return "\n".join("  " + " ".join(items[i:i + per_line])
                     for i in range(0, len(items), per_line))


def emit(schema):
    names = key_names(schema)
    slots = slots_of(names)
    values = {
        "count": len(names) + 1,
        "names": "\n".join(f"    {cpp_string(n)}," for n in names),
        "keys": "\n".join(['    {0, 0, ""},'] +
                          [f"    {{{i}, {len(n)}, {cpp_string(n)}}},"
                           for i, n in enumerate(names, 1)]),
        "slot_count": len(slots),
        "slots": wrap([f"{{{i}, {t}}}," for i, t in slots], 8),
        "k0": K0,
        "k1": K1,
    }
    return {"field_names.h": HEADER % values, "field_names.cc": SOURCE % values}
