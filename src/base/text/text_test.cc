#include "base/text/text.h"

#include <gtest/gtest.h>

namespace drakkar {
namespace {

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(Split("a,,b", ','), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_EQ(Split("", ','), (std::vector<std::string_view>{""}));
}

TEST(Text, JoinAndStrCat) {
  EXPECT_EQ(Join(std::vector<std::string>{"a", "b"}, ", "), "a, b");
  EXPECT_EQ(StrCat("a", 1, std::string("b"), -2L, 'c'), "a1b-2c");
}

TEST(Text, ParsesOnlyWholeDecimalIntegers) {
  EXPECT_EQ(ParseInt64("-12"), -12);
  EXPECT_EQ(ParseInt64("9223372036854775807"), INT64_MAX);
  EXPECT_FALSE(ParseInt64("9223372036854775808").has_value());
  EXPECT_FALSE(ParseInt64("1x").has_value());
  EXPECT_FALSE(ParseInt64("").has_value());
}

TEST(Text, QuotesAsGoDoes) {
  EXPECT_EQ(Quote("a\"b\n\x01\xff"), "\"a\\\"b\\n\\x01\\xff\"");
  EXPECT_EQ(Quote("grün"), "\"grün\"");
}

TEST(Text, KnowsValidUtf8) {
  EXPECT_TRUE(IsValidUtf8("a\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80"));
  EXPECT_FALSE(IsValidUtf8("\xc0\x80")) << "overlong";
  EXPECT_FALSE(IsValidUtf8("\xed\xa0\x80")) << "surrogate";
  EXPECT_FALSE(IsValidUtf8("\xf4\x90\x80\x80")) << "beyond the last code point";
  EXPECT_FALSE(IsValidUtf8("\xc3")) << "truncated";
}

}  // namespace
}  // namespace drakkar
