#include "api/json/jsonpath.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"

namespace drakkar::api {
namespace {

constexpr std::string_view kList = R"({
  "kind": "List",
  "items": [
    {"kind": "Node", "metadata": {"name": "a", "labels": {"example.com/zone": "x", "n": "1"}},
     "status": {"capacity": {"cpu": "4"}, "count": 3, "ready": true,
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "Full", "status": "False"}]}},
    {"kind": "Node", "metadata": {"name": "b"},
     "status": {"capacity": {"cpu": "8"}, "count": 5, "ready": false}},
    {"kind": "Node", "metadata": {"name": "c"}, "status": {"count": 7}}
  ],
  "users": [{"name": "u1", "user": {}}, {"name": "u2", "user": {"username": "admin"}}]
})";

class JsonPathTest : public ::testing::Test {
 protected:
  std::string Print(std::string_view text) {
    Result<JsonPath> path = JsonPath::Parse(text);
    if (!path.ok()) return "ERROR " + path.error().message;
    return path->Print(tree_->root());
  }
  api::TreePtr tree_ = api::ParseJson(kList).value();
};

TEST_F(JsonPathTest, FieldsAndIndices) {
  EXPECT_EQ(Print("{.kind}"), "List");
  EXPECT_EQ(Print("{.items[0].metadata.name}"), "a");
  EXPECT_EQ(Print("{.items[-1].metadata.name}"), "c");
  EXPECT_EQ(Print("{.items[0].status.count}"), "3");
  EXPECT_EQ(Print("{$.kind} and {@.kind}"), "List and List");
  EXPECT_EQ(Print("{['kind']}"), "List");
}

TEST_F(JsonPathTest, NamesWithDotsAreEscapedOrQuoted) {
  EXPECT_EQ(Print("{.items[0].metadata.labels.example\\.com/zone}"), "x");
  EXPECT_EQ(Print("{.items[0].metadata.labels['example.com/zone']}"), "x");
}

TEST_F(JsonPathTest, ManyValuesHaveASpaceBetweenThem) {
  EXPECT_EQ(Print("{.items[*].metadata.name}"), "a b c");
  EXPECT_EQ(Print("{.items[0:2].metadata.name}"), "a b");
  EXPECT_EQ(Print("{.items[1:].metadata.name}"), "b c");
  EXPECT_EQ(Print("{.items[-2:].metadata.name}"), "b c");
  EXPECT_EQ(Print("{.items[::2].metadata.name}"), "a c");
  EXPECT_EQ(Print("{.items[0,2].metadata.name}"), "a c");
  EXPECT_EQ(Print("{.items[*]['metadata.name', 'kind']}"), "Node Node Node");
  EXPECT_EQ(Print("{..name}"), "a b c u1 u2");
  EXPECT_EQ(Print("{.items[0].metadata.labels.*}"), "x 1");
}

TEST_F(JsonPathTest, RangesRepeatTheirBody) {
  EXPECT_EQ(Print(R"({range .items[*]}{.metadata.name}{"\t"}{.status.capacity.cpu}{"\n"}{end})"),
            "a\t4\nb\t8\nc\t\n");
  EXPECT_EQ(
      Print(
          R"({range .items[*]}[{.metadata.name}:{range .status.conditions[*]}{.type},{end}] {end})"),
      "[a:Ready,Full,] [b:] [c:] ");
  EXPECT_EQ(Print(R"({range .users[*]}{.name}{" of "}{$.kind};{end})"), "u1 of List;u2 of List;");
}

TEST_F(JsonPathTest, FiltersCompare) {
  EXPECT_EQ(Print(R"({.items[0].status.conditions[?(@.type=="Ready")].status})"), "True");
  EXPECT_EQ(Print(R"({.users[?(@.name == 'u2')].user.username})"), "admin");
  EXPECT_EQ(Print("{.items[?(@.status.count>3)].metadata.name}"), "b c");
  EXPECT_EQ(Print("{.items[?(@.status.count<=5)].metadata.name}"), "a b");
  EXPECT_EQ(Print("{.items[?(@.status.ready==true)].metadata.name}"), "a");
  EXPECT_EQ(Print("{.items[?(@.status.ready)].metadata.name}"), "a b");
  EXPECT_EQ(Print(R"({.items[?(@.metadata.name!="b")].metadata.name})"), "a c");
}

TEST_F(JsonPathTest, WhatIsNotThereGivesNothing) {
  EXPECT_EQ(Print("<{.nope.deeper}>"), "<>");
  EXPECT_EQ(Print("<{.items[9].metadata.name}>"), "<>");
  EXPECT_EQ(Print("<{.kind[0]}>"), "<>");
}

TEST_F(JsonPathTest, ObjectsAndTextsAreWritten) {
  EXPECT_EQ(Print("{.items[1].status.capacity}"), R"({"cpu":"8"})");
  EXPECT_EQ(Print("plain {\"quoted \\\"text\\\"\"}"), "plain quoted \"text\"");
}

TEST_F(JsonPathTest, MistakesAreToldWithTheirPlace) {
  EXPECT_EQ(Print("{.items[0}"), "ERROR jsonpath \"{.items[0}\": expected ] at character 10");
  EXPECT_TRUE(Print("{.a").starts_with("ERROR")) << Print("{.a");
  EXPECT_TRUE(Print("{range .a}x").starts_with("ERROR"));
  EXPECT_TRUE(Print("{end}").starts_with("ERROR"));
  EXPECT_TRUE(Print("{name}").starts_with("ERROR"));
  EXPECT_TRUE(Print("{.a[?(@.x==)]}").starts_with("ERROR"));
  EXPECT_TRUE(Print("{.a[::0]}").starts_with("ERROR"));
  EXPECT_TRUE(Print("{\"open}").starts_with("ERROR"));
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "{range .a}";
  EXPECT_TRUE(Print(deep).starts_with("ERROR"));
}

TEST_F(JsonPathTest, APathIsNeverNothing) {
  // The text before it may end with a character that can start one.
  for (const char* text : {"{.f.$\\.h", "{$\\}", "{@\\}", "{.a@x}"}) {
    EXPECT_FALSE(JsonPath::Parse(text).ok()) << text;
  }
}

TEST_F(JsonPathTest, PathsMayLeaveBracesOut) {
  for (std::string_view text : {"kind", ".kind", "{.kind}", "$.kind"}) {
    Result<JsonPath> path = JsonPath::ParsePath(text);
    ASSERT_TRUE(path.ok()) << text;
    ASSERT_EQ(path->Find(tree_->root()).size(), 1u) << text;
    EXPECT_EQ(path->Find(tree_->root())[0].str(), "List");
  }
  EXPECT_FALSE(JsonPath::ParsePath("{.a}{.b}").ok());
  EXPECT_FALSE(JsonPath::ParsePath("").ok());
}

}  // namespace
}  // namespace drakkar::api
