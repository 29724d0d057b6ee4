#include "api/json/reader.h"

#include <gtest/gtest.h>

#include "api/json/writer.h"
#include "api/testing/random_tree.h"

namespace drakkar::api {
namespace {

std::string Reprint(std::string_view json, ReadOptions options = {}) {
  const auto tree = ParseJson(json, options);
  return tree.ok() ? WriteJson((*tree)->root(), {.escape_html = false})
                   : "error: " + tree.error().message;
}

TEST(ParseJson, KeepsValuesAndTheirOrder) {
  EXPECT_EQ(Reprint(R"( {"b" : [1, -2, 3.5, true,false ,null, "x"], "a": {} , "c":[]} )"),
            R"({"b":[1,-2,3.5,true,false,null,"x"],"a":{},"c":[]})");
  EXPECT_EQ(Reprint("0"), "0");
  EXPECT_EQ(Reprint("\"\""), "\"\"");
}

TEST(ParseJson, TellsIntegersFromDoublesAsKubernetesDoes) {
  const auto kind = [](std::string_view json) { return (*ParseJson(json))->root().kind(); };
  EXPECT_EQ(kind("9223372036854775807"), ValueKind::kInt);
  EXPECT_EQ(kind("-9223372036854775808"), ValueKind::kInt);
  EXPECT_EQ(kind("9223372036854775808"), ValueKind::kDouble);
  EXPECT_EQ(kind("1.0"), ValueKind::kDouble);
  EXPECT_EQ(kind("1e3"), ValueKind::kDouble);
  EXPECT_EQ(Reprint("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(Reprint("1e-400"), "0");
}

TEST(ParseJson, RefusesInTheWordsOfGo) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "unexpected end of JSON input"},
      {"{", "unexpected end of JSON input"},
      {"[1,", "unexpected end of JSON input"},
      {"\"abc", "unexpected end of JSON input"},
      {"nul", "unexpected end of JSON input"},
      {"{\"a\":1,}", "invalid character '}' looking for beginning of object key string"},
      {"{a:1}", "invalid character 'a' looking for beginning of object key string"},
      {"{\"a\" 1}", "invalid character '1' after object key"},
      {"{\"a\":1 2}", "invalid character '2' after object key:value pair"},
      {"[1 2]", "invalid character '2' after array element"},
      {"[1,]", "invalid character ']' looking for beginning of value"},
      {"1 2", "invalid character '2' after top-level value"},
      {"'x'", "invalid character '\\'' looking for beginning of value"},
      {"\"a\nb\"", "invalid character '\\n' in string literal"},
      {"\"\\x\"", "invalid character 'x' in string escape code"},
      {"\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"},
      {"-x", "invalid character 'x' in numeric literal"},
      {"1.x", "invalid character 'x' after decimal point in numeric literal"},
      {"1ex", "invalid character 'x' in exponent of numeric literal"},
      {"01", "invalid character '1' after top-level value"},
      {"trux", "invalid character 'x' in literal true (expecting 'e')"},
      {"\xC3\xA9", "invalid character 'Ã' looking for beginning of value"},
      {"{\"a\":1,\"a\":2}", "duplicate field \"a\""},
      {"1e999", "cannot unmarshal number 1e999 into Go value of type float64"},
  };
  for (const auto& [json, message] : cases) {
    const auto tree = ParseJson(json);
    ASSERT_FALSE(tree.ok()) << json;
    EXPECT_EQ(tree.error().message, message) << json;
    EXPECT_EQ(tree.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(ParseJson, SaysWhereWhenAsked) {
  EXPECT_EQ(Reprint("{\n  \"a\": x}", {.position_in_errors = true}),
            "error: invalid character 'x' looking for beginning of value at line 2, column 8");
}

TEST(ParseJson, DecodesEscapesAndReplacesWhatIsNoUtf8) {
  EXPECT_EQ(Reprint(R"("\u00e9\ud83d\ude00\/\b")"), "\"é😀/\\b\"");
  EXPECT_EQ(Reprint(R"("\ud83dx")"), "\"\xEF\xBF\xBDx\"");
  EXPECT_EQ(Reprint(R"("\ud83d\u0041")"),
            "\"\xEF\xBF\xBD"
            "A\"");
  EXPECT_EQ(Reprint("\"a\xFF\xC3(\xED\xA0\x80\""),
            "\"a\xEF\xBF\xBD\xEF\xBF\xBD(\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(ParseJson, BoundsDepthAndSize) {
  const std::string hundred = std::string(100, '[') + std::string(100, ']');
  EXPECT_TRUE(ParseJson(hundred).ok());
  EXPECT_EQ(Reprint("[" + hundred + "]"), "error: exceeded max depth");
  EXPECT_FALSE(ParseJson("[1,2,3]", {.max_size_bytes = 6}).ok());
  // Depth counts open containers, not all containers seen.
  EXPECT_TRUE(ParseJson("[[],[],[],[]]", {.max_depth = 2}).ok());
}

TEST(ParseJson, FindsDuplicatesAmongManyMembers) {
  std::string json = "{";
  for (int i = 0; i < 200; ++i) json += "\"k" + std::to_string(i) + "\":1,";
  EXPECT_TRUE(ParseJson(json + "\"last\":1}").ok());
  EXPECT_EQ(Reprint(json + "\"k150\":1}"), "error: duplicate field \"k150\"");
  const auto last = ParseJson(json + "\"k150\":2,\"k3\":3}", {.refuse_duplicates = false});
  ASSERT_TRUE(last.ok());
  EXPECT_EQ((*last)->root().size(), 200u);
  EXPECT_EQ((*last)->root().Entry("k150").integer(), 2);
  EXPECT_EQ((*last)->root().Entry("k3").integer(), 3);
}

TEST(ParseJson, SetsOfFieldsCanBeKeptAsTheyStand) {
  const std::string json =
      R"({"metadata":{"managedFields":[{"manager":"m","fieldsV1":{"f:a":{ ".":{}}}},{"fieldsV1":null}]},)"
      R"("data":{"fieldsV1":{"f:a":{}},"managedFields":"x"},"after":[{"fieldsV1":{"b":1}}]})";
  const auto tree = ParseJson(json, {.opaque_field_sets = true});
  ASSERT_TRUE(tree.ok());
  const Value managers = (*tree)->root()["metadata"]["managedFields"];
  EXPECT_EQ(managers.at(0)["fieldsV1"].kind(), ValueKind::kRaw);
  EXPECT_EQ(managers.at(0)["fieldsV1"].str(), R"({"f:a":{ ".":{}}})");
  EXPECT_EQ(managers.at(0)["manager"].str(), "m");
  EXPECT_EQ(managers.at(1)["fieldsV1"].kind(), ValueKind::kNull);
  // Elsewhere the name has no special meaning.
  EXPECT_TRUE((*tree)->root()["data"]["fieldsV1"].Entry("f:a").is_object());
  EXPECT_EQ((*tree)->root().Entry("after").at(0)["fieldsV1"].Entry("b").integer(), 1);
  EXPECT_EQ(WriteJson((*tree)->root()), json);
  EXPECT_FALSE(
      ParseJson(R"({"managedFields":[{"fieldsV1":{"f:a":}}]})", {.opaque_field_sets = true}).ok());
  std::string deep = "1";
  for (int i = 0; i < 200; ++i) deep = R"({"a":)" + deep + "}";
  deep = R"({"managedFields":[{"fieldsV1":)" + deep + "}]}";
  EXPECT_FALSE(ParseJson(deep, {.opaque_field_sets = true}).ok())
      << "the depth is bounded there, too";
}

TEST(ParseJson, ReadsBackWhatTheWriterWrites) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const TreePtr tree = RandomTree(seed).Make().Freeze();
    for (const int indent : {0, 2}) {
      const std::string json =
          WriteJson(tree->root(), {.indent = indent, .sort_members = indent == 2});
      const auto back = ParseJson(json);
      ASSERT_TRUE(back.ok()) << "seed " << seed << ": " << back.error().message << "\n" << json;
      EXPECT_TRUE(Equal((*back)->root(), tree->root())) << "seed " << seed << "\n" << json;
    }
  }
}

}  // namespace
}  // namespace drakkar::api
