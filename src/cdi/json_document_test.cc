#include <gtest/gtest.h>

#include "base/text/text.h"
#include "cdi/document.h"

namespace drakkar::cdi {
namespace {

using Kind = Document::Kind;

TEST(JsonDocument, ReadsEveryKindOfValue) {
  const Result<Document> document = ParseJsonDocument(
      " {\"a\": [1, -2.5e+3, true, false, null, \"x\\u00e9\\ud83d\\ude00\\n\"], \"b\": {}} ");
  ASSERT_TRUE(document.ok()) << document.error().message;
  ASSERT_EQ(document->members.size(), 2u);
  const std::vector<Document>& items = document->members[0].second.items;
  ASSERT_EQ(items.size(), 6u);
  EXPECT_EQ(items[0].text, "1");
  EXPECT_EQ(items[1].text, "-2.5e+3");
  EXPECT_TRUE(items[2].boolean);
  EXPECT_FALSE(items[3].boolean);
  EXPECT_EQ(items[3].kind, Kind::kBool);
  EXPECT_EQ(items[4].kind, Kind::kNull);
  EXPECT_EQ(items[5].text, "x\xc3\xa9\xf0\x9f\x98\x80\n");
  EXPECT_EQ(document->members[1].second.kind, Kind::kObject);
}

TEST(JsonDocument, RefusesWhatIsNotStrictJson) {
  for (const char* bad : {"",
                          " ",
                          "{",
                          "[",
                          "[1,]",
                          "{\"a\":1,}",
                          "{a:1}",
                          "{'a':1}",
                          "01",
                          "1.",
                          ".5",
                          "+1",
                          "1e",
                          "-",
                          "tru",
                          "nul",
                          "\"",
                          "\"\\x\"",
                          "\"\\u12\"",
                          "\"\\ud800\"",
                          "\"\\udc00\"",
                          "\"\\ud800\\u0041\"",
                          "\"a\nb\"",
                          "[1 2]",
                          "{\"a\" 1}",
                          "1 2",
                          "{} x",
                          "\"\xff\"",
                          "{\"a\":1,\"a\":2}",
                          "// no\n1"}) {
    EXPECT_FALSE(ParseJsonDocument(bad).ok()) << bad;
  }
}

TEST(JsonDocument, SaysWhere) {
  EXPECT_EQ(ParseJsonDocument("{\n  \"a\": 1,\n  \"a\": 2}").error().message,
            "line 3, column 6: duplicate key \"a\"");
}

TEST(JsonDocument, BoundsDepthAndSize) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_TRUE(ParseJsonDocument(nested(kMaxDocumentDepth)).ok());
  EXPECT_FALSE(ParseJsonDocument(nested(kMaxDocumentDepth + 1)).ok());
  EXPECT_FALSE(ParseJsonDocument(nested(1'000'000)).ok());
  EXPECT_FALSE(ParseJsonDocument(std::string(kMaxSpecBytes + 1, ' ')).ok());
}

}  // namespace
}  // namespace drakkar::cdi
