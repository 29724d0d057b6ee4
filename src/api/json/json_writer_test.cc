#include "api/json/json_writer.h"

#include <map>
#include <vector>

#include "api/json/reader.h"
#include "gtest/gtest.h"

namespace drakkar::api {
namespace {

JsonWriter& WriteSample(JsonWriter& json) {
  json.BeginObject().Member("text", "a\"b\\c\n\x01\xc3\xa4").Key("big").Integer(INT64_MIN);
  json.Key("most").Unsigned(UINT64_MAX).Key("yes").Bool(true);
  json.Array("list", std::vector<std::string>{"x", ""});
  json.StringMap("map", std::map<std::string, std::string>{{"k", "v"}});
  json.Key("none").BeginObject().EndObject().Key("rows").BeginArray();
  json.BeginArray().Raw("1").Raw("null").EndArray().BeginArray().EndArray().EndArray();
  return json.EndObject();
}

TEST(JsonWriter, WritesOnOneLine) {
  JsonWriter json;
  EXPECT_EQ(WriteSample(json).Take(),
            R"({"text":"a\"b\\c\n\u0001ä","big":-9223372036854775808,"most":18446744073709551615,)"
            R"("yes":true,"list":["x",""],"map":{"k":"v"},"none":{},"rows":[[1,null],[]]})");
}

TEST(JsonWriter, IndentsAsTheTreeWriterDoes) {
  JsonWriter compact;
  JsonWriter indented({.indent = 2, .final_newline = true});
  const TreePtr tree = *ParseJson(compact.BeginObject()
                                      .Key("rows")
                                      .BeginArray()
                                      .BeginArray()
                                      .Raw("1")
                                      .EndArray()
                                      .BeginArray()
                                      .EndArray()
                                      .EndArray()
                                      .Member("a", "<b>")
                                      .EndObject()
                                      .Take());
  indented.BeginObject().Key("rows").BeginArray().BeginArray().Raw("1").EndArray();
  indented.BeginArray().EndArray().EndArray().Member("a", "<b>").EndObject();
  EXPECT_EQ(indented.Take(), WriteJson(tree->root(), {.indent = 2, .final_newline = true}));
}

TEST(JsonWriter, IsReadBackByTheReader) {
  JsonWriter json({.indent = 4, .escape_html = false});
  const Result<TreePtr> tree = ParseJson(WriteSample(json).Take());
  ASSERT_TRUE(tree.ok()) << tree.error().message;
  EXPECT_EQ((*tree)->root()["text"].str(), "a\"b\\c\n\x01\xc3\xa4");
  EXPECT_EQ((*tree)->root().Entry("rows").at(0).size(), 2u);
}

TEST(JsonWriter, ReplacesBytesThatAreNotUtf8) {
  JsonWriter json;
  EXPECT_EQ(json.String("<\xff\xc3\xa4\xc3").Take(), "\"\\u003c\\ufffd\xc3\xa4\\ufffd\"");
}

}  // namespace
}  // namespace drakkar::api
