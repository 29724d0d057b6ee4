#include "api/meta/names.h"

#include <gtest/gtest.h>

namespace drakkar::api {
namespace {

TEST(Names, AcceptWhatKubernetesAccepts) {
  EXPECT_TRUE(CheckDnsLabel("a-1").empty());
  EXPECT_TRUE(CheckDnsSubdomain("gpu.example.com").empty());
  EXPECT_TRUE(CheckDns1035Label("a1").empty());
  EXPECT_TRUE(CheckLabelKey("example.com/My_Name.x").empty());
  EXPECT_TRUE(CheckLabelValue("").empty());
  EXPECT_TRUE(CheckLabelValue("v1.2_3-x").empty());
}

TEST(Names, SayWhatIsWrong) {
  EXPECT_EQ(CheckDnsLabel(std::string(64, 'a')), Problems{"must be no more than 63 bytes"});
  for (const char* text : {"", "-a", "a-", "A", "a.b", "a_b"}) {
    EXPECT_EQ(CheckDnsLabel(text).size(), 1u) << text;
  }
  for (const char* text : {"", "a..b", ".a", "a.", "A.b"}) {
    EXPECT_EQ(CheckDnsSubdomain(text).size(), 1u) << text;
  }
  EXPECT_EQ(CheckDns1035Label("1a").size(), 1u);
  EXPECT_EQ(CheckLabelKey("/").size(), 3u);
  EXPECT_EQ(CheckLabelKey("/a"), Problems{"prefix part must be non-empty"});
  EXPECT_EQ(CheckLabelValue("-").size(), 1u);
}

}  // namespace
}  // namespace drakkar::api
