#include "storage/sqlite/row_checksum.h"

#include <string>

#include "base/hash/crc32.h"

namespace drakkar::storage {
namespace {

void AppendLittleEndian(std::string& out, std::uint64_t number) {
  for (int byte = 0; byte < 8; ++byte) out += static_cast<char>((number >> (8 * byte)) & 0xff);
}

}  // namespace

std::uint32_t RowChecksum(RowId id, Revision created, std::string_view key,
                          std::optional<std::string_view> value) {
  std::string head;
  head.reserve(25);
  AppendLittleEndian(head, static_cast<std::uint64_t>(id));
  AppendLittleEndian(head, static_cast<std::uint64_t>(created));
  AppendLittleEndian(head, key.size());
  head += value.has_value() ? '\1' : '\0';
  const std::uint32_t of_key = Crc32(key, Crc32(head));
  return value.has_value() ? Crc32(*value, of_key) : of_key;
}

}  // namespace drakkar::storage
