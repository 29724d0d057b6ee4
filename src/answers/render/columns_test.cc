#include "answers/render/columns.h"

#include <gtest/gtest.h>

#include "answers/render/json.h"

namespace drakkar::answers {
namespace {

TEST(TextTable, PadsColumnsAndEndsRowsWithTheirLastCell) {
  TextTable table({{"NAME"}, {"COUNT", true}, {"NOTE"}});
  table.AddRow({"a", "1", "x"});
  table.AddRow({"longer", "1000", ""});
  EXPECT_EQ(table.Render(0),
            "NAME    COUNT  NOTE\n"
            "a           1  x\n"
            "longer   1000\n");
}

TEST(TextTable, CutsTheWidestNamesUntilItFits) {
  TextTable table({{"POD", false, true}, {"CLAIM", false, true}, {"AGE"}});
  table.AddRow({"team-a/a-very-long-name-of-a-pod-0", "claim", "3h"});
  EXPECT_EQ(table.Render(30),
            "POD                 CLAIM  AGE\n"
            "team-a/a-…-a-pod-0  claim  3h\n");
}

TEST(CutMiddle, KeepsBothEndsAndNeverSplitsACharacter) {
  EXPECT_EQ(CutMiddle("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(CutMiddle("abcdefghij", 5), "ab…ij");
  EXPECT_EQ(CutMiddle("äöüäöüäöü", 5), "äö…öü");
  EXPECT_EQ(CutMiddle("abc", 1), "…");
  EXPECT_EQ(CutMiddle("abc", 0), "");
}

TEST(Wrap, BreaksBetweenWordsAndIndentsWhatFollows) {
  EXPECT_EQ(Wrap("one two three four", 9, 2), "one two\n  three\n  four\n");
  EXPECT_EQ(Wrap("unbreakable", 4), "unbreakable\n");
  EXPECT_EQ(Wrap("one two", 0), "one two\n");
}

TEST(JsonOut, WritesObjectsArraysAndEscapes) {
  JsonOut json;
  json.BeginObject().Field("text", "a\"b").Field("n", 3).Field("yes", true);
  json.Texts("list", {"x", "y"}).Texts("none", {});
  EXPECT_EQ(json.EndObject().Take(),
            "{\n  \"text\": \"a\\\"b\",\n  \"n\": 3,\n  \"yes\": true,\n  \"list\": [\n    \"x\",\n"
            "    \"y\"\n  ],\n  \"none\": []\n}\n");
  JsonOut line(false);
  EXPECT_EQ(line.BeginArray().Number(1).Number(-2).EndArray().Take(), "[1,-2]");
}

TEST(WrapTree, ContinuesTheBranches) {
  EXPECT_EQ(WrapTree("├─ claim a\n│  └─ one two three four five six\n└─ end", 24),
            "├─ claim a\n"
            "│  └─ one two three four\n"
            "│       five six\n"
            "└─ end\n");
  EXPECT_EQ(WrapTree("├─ one two three four five six seven", 24),
            "├─ one two three four\n"
            "│    five six seven\n");
  EXPECT_EQ(WrapTree("└─ a b", 0), "└─ a b\n");
}

}  // namespace
}  // namespace drakkar::answers
