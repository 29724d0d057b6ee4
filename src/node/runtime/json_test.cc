#include "node/runtime/json.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace drakkar::node {
namespace {

TEST(RuntimeJson, ReadsWhatItWrites) {
  JsonWriter writer;
  writer.BeginObject().Member("text", "a\"b\\c\n\x01\xc3\xa4").Key("big").Integer(INT64_MIN);
  writer.Key("yes").Bool(true).Array("list", std::vector<std::string>{"x", ""});
  writer.Key("none").BeginObject().EndObject().EndObject();
  auto value = ParseJson(writer.text());
  ASSERT_TRUE(value.ok()) << value.error().message << writer.text();
  EXPECT_EQ(value->String("text"), "a\"b\\c\n\x01\xc3\xa4");
  EXPECT_EQ(value->Integer("big"), INT64_MIN);
  EXPECT_TRUE(value->Bool("yes"));
  EXPECT_EQ(value->Strings("list"), (std::vector<std::string>{"x", ""}));
  EXPECT_EQ(value->String("absent"), "");
}

TEST(RuntimeJson, WritesBytesThatAreNotTextAsReplacement) {
  JsonWriter writer;
  writer.String("a\xff");
  EXPECT_EQ(writer.text(), "\"a\\ufffd\"");
}

TEST(RuntimeJson, ReadsEscapesAndSurrogates) {
  EXPECT_EQ(ParseJson(R"("\u00e4\ud83d\ude00\/")")->text, "\xc3\xa4\xf0\x9f\x98\x80/");
  EXPECT_EQ(ParseJson("1e2")->number, 100);
  EXPECT_EQ(ParseJson("-0")->integer, 0);
}

TEST(RuntimeJson, RefusesWhatIsNotJson) {
  for (const char* bad :
       {"", "{", "[1,]", "{\"a\":1,}", "{\"a\":1,\"a\":2}", "{\"a\":null,\"a\":2}", "01", "1.",
        "+1", "nul", "\"\\x\"", "\"\n\"", "1 2", "{a:1}"}) {
    EXPECT_FALSE(ParseJson(bad).ok()) << bad;
  }
  EXPECT_FALSE(ParseJson(std::string(100, '[')).ok()) << "nesting is bounded";
}

}  // namespace
}  // namespace drakkar::node
