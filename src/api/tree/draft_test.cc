#include "api/tree/draft.h"

#include <gtest/gtest.h>

#include "api/tree/draft_view.h"

namespace drakkar::api {
namespace {

TEST(Draft, MakesObjectsOnTheWay) {
  Draft draft;
  draft["status"]["phase"] = "Running";
  draft["metadata"]["finalizers"].Append("x/y");
  draft["metadata"]["generation"] = 3;
  const TreePtr tree = draft.Freeze();
  EXPECT_EQ(tree->root()["status"]["phase"].str(), "Running");
  EXPECT_EQ(tree->root()["metadata"]["finalizers"].at(0).str(), "x/y");
  EXPECT_EQ(tree->root()["metadata"]["generation"].integer(), 3);
}

TEST(Draft, CopiesOnlyTheLevelsThatChange) {
  const TreePtr before = Draft{
      {"spec", Draft{{"a", 1}, {"b", Draft{{"c", "deep"}}}}},
      {"status",
       Draft{{"x", 1}}}}.Freeze();
  Draft draft(before);
  draft["spec"]["a"] = 2;
  EXPECT_TRUE(draft["status"].borrowed().exists());
  EXPECT_FALSE(draft["spec"].borrowed().exists());
  EXPECT_TRUE(draft["spec"]["b"].borrowed().exists());
  const TreePtr after = draft.Freeze();
  EXPECT_EQ(after->root()["spec"]["a"].integer(), 2);
  EXPECT_EQ(after->root()["spec"]["b"]["c"].str(), "deep");
  EXPECT_EQ(before->root()["spec"]["a"].integer(), 1);
}

TEST(Draft, PartsTakenOutOutliveTheTreeTheyCameFrom) {
  Draft part;
  {
    Draft whole(Draft{{"free.name/x", Draft{{"free.name/y", "value"}}}}.Freeze());
    part = whole["free.name/x"];
  }
  part["free.name/z"] = 1;
  Draft other;
  for (auto& [key, value] : part.MutableMembers()) other[key->view()] = value;
  part = Draft();
  EXPECT_EQ(other.Freeze()->root()["free.name/y"].str(), "value");
}

TEST(Draft, AbsentMembersAndElementsAreLeftOut) {
  Draft draft;
  draft["gone"];
  draft["list"] = Draft::Array({1, Draft(), 2});
  const TreePtr tree = draft.Freeze();
  EXPECT_EQ(tree->root().size(), 1u);
  EXPECT_EQ(tree->root()["list"].size(), 2u);
  EXPECT_FALSE(Draft().Freeze()->root().exists());
}

TEST(Draft, FindChangesNothingThatCanBeSeen) {
  Draft draft(Draft{{"a", 1}}.Freeze());
  EXPECT_EQ(draft.Find("b"), nullptr);
  EXPECT_EQ(draft.size(), 1u);
  ASSERT_NE(draft.Find("a"), nullptr);
  EXPECT_EQ(draft.Find("a")->integer(), 1);
  EXPECT_TRUE(draft.Remove("a"));
  EXPECT_FALSE(draft.Remove("a"));
  EXPECT_EQ(draft.size(), 0u);
}

TEST(Draft, EditsArrays) {
  Draft draft(Draft::Array({1, 2, 3}).Freeze());
  draft.RemoveAt(1);
  draft.Insert(0, "zero");
  draft.at(2) = true;
  draft.Append(nullptr);
  const TreePtr tree = draft.Freeze();
  EXPECT_EQ(tree->root().at(0).str(), "zero");
  EXPECT_EQ(tree->root().at(1).integer(), 1);
  EXPECT_TRUE(tree->root().at(2).boolean());
  EXPECT_EQ(tree->root().at(3).kind(), ValueKind::kNull);
}

TEST(Draft, AValueMayBeReplacedByAPartOfItself) {
  Draft draft{{"a", Draft{{"b", 5}}}};
  draft = draft["a"];
  EXPECT_EQ(draft["b"].integer(), 5);
  draft = std::move(draft["b"]);
  EXPECT_EQ(draft.integer(), 5);
}

TEST(Draft, RawKeepsItsBytes) {
  const TreePtr tree = Draft{{"parameters", Draft::Raw("{ \"a\" : 1 }")}}.Freeze();
  EXPECT_EQ(tree->root()["parameters"].kind(), ValueKind::kRaw);
  EXPECT_EQ(tree->root()["parameters"].str(), "{ \"a\" : 1 }");
}

TEST(DraftView, ReadsAsTheFrozenTreeAndSharesWhatDidNotChange) {
  const TreePtr before = Draft{
      {"spec", Draft{{"a", 1}, {"b", Draft{{"c", "deep"}}}}},
      {"list",
       Draft::Array({1, 2})}}.Freeze();
  Draft draft(before);
  draft["spec"]["a"] = "text";
  draft["spec"]["gone"] = Draft();
  draft["spec"]["raw"] = Draft::Raw("[1]");
  draft["list"].Append(Draft());
  draft["list"].Append(nullptr);
  draft["list"].Append(2.5);
  draft["list"].Append(true);
  const DraftView view(draft);
  EXPECT_TRUE(Equal(view.root(), draft.Freeze()->root()));
  EXPECT_TRUE(Equal(view.Freeze()->root(), draft.Freeze()->root()));
  EXPECT_EQ(view.root()["spec"].size(), 3u);  // what is absent is not there
  EXPECT_EQ(view.root()["list"].size(), 5u);
  EXPECT_EQ(view.root()["spec"]["b"].node()->members, before->root()["spec"]["b"].node()->members);
}

}  // namespace
}  // namespace drakkar::api
