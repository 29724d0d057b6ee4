#include "base/hash/sha256.h"

#include "gtest/gtest.h"

namespace drakkar {
namespace {

TEST(Sha256, MatchesThePublishedVectors) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256Hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, IsTheSameHoweverTheMessageIsCut) {
  std::string message;
  for (int i = 0; i < 300; ++i) message += static_cast<char>(i * 7);
  for (std::size_t length : {55u, 56u, 57u, 63u, 64u, 65u, 119u, 120u, 128u, 300u}) {
    const std::string whole = message.substr(0, length);
    for (std::size_t cut = 0; cut <= length; cut += 13) {
      Sha256 hash;
      hash.Update(std::string_view(whole).substr(0, cut));
      hash.Update(std::string_view(whole).substr(cut));
      EXPECT_EQ(HexDigest(hash.Finish()), Sha256Hex(whole)) << length << " cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace drakkar
