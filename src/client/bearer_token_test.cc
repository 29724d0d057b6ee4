#include "client/bearer_token.h"

#include <gtest/gtest.h>

#include "base/testing/memory_file_system.h"
#include "base/testing/seeded_loop.h"

namespace drakkar::client {
namespace {

using namespace std::chrono_literals;

class BearerTokenTest : public ::testing::Test {
 protected:
  BearerTokenTest() { Put("first\n"); }
  void Put(std::string_view text) { ASSERT_TRUE(files_.WriteFile("/token", text, 0600).ok()); }

  FakeClock clock_;
  MemoryFileSystem files_;
  BearerToken token_{"first", "/token", files_, clock_};
};

TEST_F(BearerTokenTest, TheFileIsReadAgainOnceTheTokenIsOld) {
  EXPECT_EQ(token_.Get(), "first");
  Put("second\n");
  clock_.Advance(59s);
  EXPECT_EQ(token_.Get(), "first");
  clock_.Advance(1s);
  EXPECT_EQ(token_.Get(), "second");
}

TEST_F(BearerTokenTest, ARejectedTokenIsReplacedAtOnce) {
  EXPECT_EQ(token_.Get(), "first");
  EXPECT_FALSE(token_.Replace("first")) << "the file has no other";
  Put("second");
  EXPECT_TRUE(token_.Replace("first"));
  EXPECT_EQ(token_.Get(), "second");
  ASSERT_TRUE(files_.Remove("/token").ok());
  EXPECT_TRUE(token_.Replace("first")) << "of a request that was under way meanwhile";
}

TEST_F(BearerTokenTest, TheLastGoodTokenIsKeptWhileTheFileCannotBeRead) {
  EXPECT_EQ(token_.Get(), "first");
  ASSERT_TRUE(files_.Remove("/token").ok());
  clock_.Advance(10min);
  EXPECT_EQ(token_.Get(), "first");
  Put("");
  clock_.Advance(10min);
  EXPECT_EQ(token_.Get(), "first") << "on its way";
  Put("second");
  clock_.Advance(1min);
  EXPECT_EQ(token_.Get(), "second");
}

TEST_F(BearerTokenTest, ALiveTokenIsTheOneOfTheMoment) {
  const auto live = std::make_shared<std::string>("first");
  BearerToken token("", "", files_, clock_, live);
  EXPECT_EQ(token.Get(), "first");
  EXPECT_FALSE(token.Replace("first"));
  *live = "second";
  EXPECT_TRUE(token.Replace("first"));
  EXPECT_EQ(token.Get(), "second");
}

TEST_F(BearerTokenTest, AFixedTokenNeverChanges) {
  BearerToken fixed("fixed", "", files_, clock_);
  clock_.Advance(24h);
  EXPECT_EQ(fixed.Get(), "fixed");
  EXPECT_FALSE(fixed.Replace("fixed"));
}

}  // namespace
}  // namespace drakkar::client
