#include <gtest/gtest.h>

#include "api/codec/yaml_reader.h"
#include "api/codec/yaml_writer.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/testing/random_tree.h"

namespace drakkar::api {
namespace {

// All documents as JSON, one per line, or the error.
std::string Json(std::string_view yaml, YamlReadOptions options = {}) {
  const auto documents = ParseYaml(yaml, options);
  if (!documents.ok()) return documents.error().message;
  std::string text;
  for (const TreePtr& document : *documents) {
    if (!text.empty()) text += "\n";
    text += WriteJson(document->root(), {.escape_html = false});
  }
  return text;
}

TEST(ParseYaml, ReadsBlocksAndFlows) {
  EXPECT_EQ(Json("a: 1\nb:\n- x\n- {c: [1, 2.5]}\nc: |\n  two\n  lines\nd: >-\n  one\n  line\n"),
            R"({"a":1,"b":["x",{"c":[1,2.5]}],"c":"two\nlines\n","d":"one line"})");
  EXPECT_EQ(Json(R"({"a": [1, "x", null, true]})"), R"({"a":[1,"x",null,true]})");
}

TEST(ParseYaml, ResolvesScalarsAsKubernetesToolsDo) {
  EXPECT_EQ(Json("[yes, No, on, OFF, y, true, ~, null, '', 'yes', \"1\"]"),
            R"([true,false,true,false,true,true,null,null,"","yes","1"])");
  EXPECT_EQ(Json("[0x1f, 017, 0o17, 0b11, 1_000, -5, +5, 08, 1e3, .5, 1.5, 12:30]"),
            R"([31,15,15,3,1000,-5,5,8,1000,0.5,1.5,"12:30"])");
  EXPECT_EQ(Json("[2001-01-01, 2001-01-01T00:00:00Z, 1.2.3, v1, 1Gi, 100m]"),
            R"(["2001-01-01","2001-01-01T00:00:00Z","1.2.3","v1","1Gi","100m"])");
  EXPECT_EQ(Json("[!!str 1, ! 1, !!int '7', !!binary aGk=]"), R"(["1","1",7,"hi"])");
  EXPECT_EQ(Json("a:\nb: "), R"({"a":null,"b":null})");
}

TEST(ParseYaml, MakesTextsOfKeys) {
  EXPECT_EQ(Json("1: a\ntrue: b\n1.5: c\non: d"),
            "key \"true\" already set in map at line 4, column 1");
  EXPECT_EQ(Json("1: a\ntrue: b\n1.5: c\n"), R"({"1":"a","true":"b","1.5":"c"})");
}

TEST(ParseYaml, ReadsSeveralDocumentsAndLeavesOutEmptyOnes) {
  EXPECT_EQ(Json("---\na: 1\n---\n# nothing\n---\nb: 2\n...\n"), "{\"a\":1}\n{\"b\":2}");
  EXPECT_EQ(Json(""), "");
  EXPECT_EQ(Json("# only a comment\n"), "");
}

TEST(ParseYaml, ResolvesAnchorsAndMergeKeys) {
  EXPECT_EQ(Json("a: &x {k: 1, l: 2}\nb: *x\nc:\n  <<: *x\n  k: 3\n"),
            R"({"a":{"k":1,"l":2},"b":{"k":1,"l":2},"c":{"k":3,"l":2}})");
  EXPECT_EQ(Json("a: *nope"), "unknown anchor \"nope\" at line 1, column 5");
  EXPECT_EQ(Json("a: &x [*x]").find("unknown anchor"), 0u);
}

TEST(ParseYaml, RefusesBombs) {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 0; j < 9; ++j) bomb += "," + before;
    bomb += "]\n";
  }
  EXPECT_NE(Json(bomb).find("the documents have more than"), std::string::npos);
  EXPECT_NE(Json(std::string(200, '[')).find("exceeded max depth"), std::string::npos);
  EXPECT_NE(Json("a: b", {.max_size_bytes = 3}).find("more than the limit"), std::string::npos);
}

TEST(ParseYaml, SaysWhereItWentWrong) {
  EXPECT_EQ(Json("a: 1\nb: 2\na: 3\n"), "key \"a\" already set in map at line 3, column 1");
  for (const char* bad : {"a: [1\nb: 2", "\"x", "a: b: c", "\t- a", "a: 'x"}) {
    const std::string error = Json(bad);
    EXPECT_NE(error.find("line "), std::string::npos) << bad << " -> " << error;
  }
}

std::string Yaml(std::string_view json) {
  return WriteYaml((*ParseJson(json))->root());
}

TEST(WriteYaml, PrintsAsKubectlDoes) {
  EXPECT_EQ(Yaml(R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","labels":{}},
                     "spec":{"containers":[{"name":"c","args":["a","b"],"x":[["y"],[]]}],"n":null,"t":true,"i":3,"d":1.5}})"),
            R"(apiVersion: v1
kind: Pod
metadata:
  labels: {}
  name: p
spec:
  containers:
  - args:
    - a
    - b
    name: c
    x:
    - - "y"
    - []
  d: 1.5
  i: 3
  "n": null
  t: true
)");
}

TEST(WriteYaml, QuotesWhatNeedsIt) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("plain text")", "plain text\n"},
      {R"("")", "\"\"\n"},
      {R"("yes")", "\"yes\"\n"},
      {R"("1")", "\"1\"\n"},
      {R"("1e3")", "\"1e3\"\n"},
      {R"("null")", "\"null\"\n"},
      {R"("12:30")", "\"12:30\"\n"},
      {R"("a: b")", "'a: b'\n"},
      {R"("a:b")", "a:b\n"},
      {R"("a #b")", "'a #b'\n"},
      {R"("- x")", "'- x'\n"},
      {R"("-x")", "-x\n"},
      {R"("*")", "'*'\n"},
      {R"("it's: x")", "'it''s: x'\n"},
      {R"(" x")", "' x'\n"},
      {R"("a\tb")", "\"a\\tb\"\n"},
      {R"("2001-01-01T00:00:00Z")", "\"2001-01-01T00:00:00Z\"\n"},
      {R"("a\nb")", "|-\n  a\n  b\n"},
      {R"("a\nb\n")", "|\n  a\n  b\n"},
      {R"("a\n\n")", "|+\n  a\n\n"},
      {R"("a \nb")", "\"a \\nb\"\n"},
  };
  for (const auto& [json, yaml] : cases) EXPECT_EQ(Yaml(json), yaml) << json;
}

TEST(WriteYaml, SortsNumbersInKeysByTheirValue) {
  EXPECT_EQ(Yaml(R"({"a10":1,"a9":1,"B":1,"a-b":1})"), "B: 1\na-b: 1\na9: 1\na10: 1\n");
}

TEST(WriteYaml, FoldsLongTexts) {
  const std::string word(30, 'w');
  const std::string json = "{\"message\":\"" + word + " " + word + " " + word + " " + word + "\"}";
  EXPECT_EQ(Yaml(json), "message: " + word + " " + word + " " + word + "\n  " + word + "\n");
}

TEST(ParseYaml, ReadsLongRunsOfDoubledQuotesInKeysAndValues) {
  const std::string quoted = "'" + std::string(100, '\'') + "'";
  const std::string meant(50, '\'');
  auto documents = ParseYaml("{" + quoted + ": " + quoted + ", b: [" + quoted + "]}\n");
  ASSERT_TRUE(documents.ok()) << documents.error().message;
  ASSERT_EQ(documents->size(), 1u);
  const Value root = documents->front()->root();
  EXPECT_EQ(root.Entry(meant).str(), meant);
  EXPECT_EQ(root.Entry("b").at(0).str(), meant);
}

TEST(ParseYaml, JoinsLinesThatEndInABackslash) {
  EXPECT_EQ(Json("a: \"one \\\n  two \\\\ \\u00e9\\x41\\t \n  three\\\r\n\r\n  \\  four\"\n"),
            R"({"a":"one two \\ éA\t three\n  four"})");
  // Compares with libfyaml's own result where it gives one.
  EXPECT_EQ(Json("a: \"x\\\n  y\"\n"), R"({"a":"xy"})");
  EXPECT_EQ(Json("a: \"x \n\n  y\\\n z\"\n"), R"({"a":"x\nyz"})");
  EXPECT_EQ(Json("a: \"\n  x\n  \"\nb: '\n\n  y \t\n\n\n z '\n"), R"({"a":" x ","b":"\ny\n\nz "})");
  EXPECT_EQ(Json("a: 'x\r\n  y'\nb: 'x\r\n\r\n  y'\n"), R"({"a":"x y","b":"x\ny"})");
}

TEST(ParseYaml, ReadsSingleQuotesOverSeveralLines) {
  EXPECT_EQ(Json("a: 'it''s\n  one\n\n  ''two'''\nb: '''''~'\n"),
            R"({"a":"it's one\n'two'","b":"''~"})");
}

TEST(WriteYaml, IsReadBackAsTheSame) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const TreePtr tree = Draft::Map({{"root", RandomTree(seed).Make()}}).Freeze();
    const std::string yaml = WriteYaml(tree->root());
    const auto back = ParseYaml(yaml);
    ASSERT_TRUE(back.ok()) << "seed " << seed << ": " << back.error().message << "\n" << yaml;
    ASSERT_EQ(back->size(), 1u) << yaml;
    EXPECT_TRUE(Equal((*back)[0]->root(), tree->root())) << "seed " << seed << "\n"
                                                         << yaml << "\n"
                                                         << WriteJson(tree->root()) << "\n"
                                                         << WriteJson((*back)[0]->root());
  }
}

}  // namespace
}  // namespace drakkar::api
