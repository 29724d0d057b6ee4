#include "storage/sqlite/row_checksum.h"

#include <gtest/gtest.h>

#include <string>

#include "base/hash/crc32.h"

namespace drakkar::storage {
namespace {

std::string LittleEndian(std::uint64_t number) {
  std::string bytes;
  for (int byte = 0; byte < 8; ++byte) bytes += static_cast<char>((number >> (8 * byte)) & 0xff);
  return bytes;
}

// The format of docs/formats/store.md, written down a second time.
std::uint32_t Expected(RowId id, Revision created, const std::string& key,
                       const std::optional<std::string>& value) {
  return Crc32(LittleEndian(static_cast<std::uint64_t>(id)) +
               LittleEndian(static_cast<std::uint64_t>(created)) + LittleEndian(key.size()) +
               std::string(1, value.has_value() ? '\1' : '\0') + key + value.value_or(""));
}

TEST(RowChecksum, IsTheCrc32OfTheDocumentedBytes) {
  EXPECT_EQ(RowChecksum(7, 3, "pods/a", "{}"), Expected(7, 3, "pods/a", "{}"));
  const std::string large(100'000, 'x');
  EXPECT_EQ(RowChecksum(1LL << 40, 9, "k", large), Expected(1LL << 40, 9, "k", large));
}

TEST(RowChecksum, OfADeletionDiffersFromThatOfAnEmptyValue) {
  EXPECT_EQ(RowChecksum(7, 3, "k", std::nullopt), Expected(7, 3, "k", std::nullopt));
  EXPECT_EQ(RowChecksum(7, 3, "k", ""), Expected(7, 3, "k", ""));
  EXPECT_NE(RowChecksum(7, 3, "k", ""), RowChecksum(7, 3, "k", std::nullopt));
}

TEST(RowChecksum, CoversTheHeadEvenWithoutKeyAndValue) {
  const std::string_view null;
  EXPECT_EQ(RowChecksum(7, 3, null, null), Expected(7, 3, "", ""));
  EXPECT_NE(RowChecksum(7, 3, null, null), RowChecksum(8, 3, null, null));
  EXPECT_NE(RowChecksum(7, 3, null, null), RowChecksum(7, 4, null, null));
}

TEST(RowChecksum, TellsAKeyFromAValueThatContinuesIt) {
  EXPECT_NE(RowChecksum(7, 3, "ab", "c"), RowChecksum(7, 3, "a", "bc"));
}

}  // namespace
}  // namespace drakkar::storage
