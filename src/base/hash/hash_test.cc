#include <gtest/gtest.h>

#include "base/hash/base64.h"
#include "base/hash/crc32.h"

namespace drakkar {
namespace {

TEST(Crc32, MatchesTheCheckValueOfThePolynomial) {
  EXPECT_EQ(Crc32("123456789"), 0xcbf43926u);
  EXPECT_EQ(Crc32(""), 0u);
}

TEST(Crc32, PartsGiveTheSameAsTheWhole) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes += static_cast<char>(i * 37);
  const std::uint32_t whole = Crc32(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    EXPECT_EQ(Crc32(bytes.substr(cut), Crc32(bytes.substr(0, cut))), whole) << cut;
  }
}

TEST(Base64, RoundTripsEveryLength) {
  std::string bytes;
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(*Base64Decode(Base64Encode(bytes)), bytes);
    EXPECT_EQ(*Base64UrlDecode(Base64UrlEncode(bytes)), bytes);
    bytes += static_cast<char>(i * 37);
  }
  EXPECT_EQ(Base64Encode("ab"), "YWI=");
  EXPECT_EQ(Base64UrlEncode("\xfb\xff"), "-_8");
}

TEST(Base64, RejectsMalformedBase64) {
  EXPECT_FALSE(Base64Decode("a").ok());
  EXPECT_FALSE(Base64Decode("YWI").ok());
  EXPECT_FALSE(Base64Decode("YW!=").ok());
  EXPECT_FALSE(Base64Decode("YWJ=").ok()) << "the unused bits must be zero";
}

}  // namespace
}  // namespace drakkar
