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
  const TreePtr before = Draft{{"spec", Draft::Map({{"a", 1}, {"b", Draft::Map({{"c", "deep"}})}})},
                               {"status", Draft::Map({{"x", 1}})}}
                             .Freeze();
  Draft draft(before);
  draft["spec"].Entry("a") = 2;
  EXPECT_TRUE(draft["status"].borrowed().exists());
  EXPECT_FALSE(draft["spec"].borrowed().exists());
  EXPECT_TRUE(draft["spec"].Entry("b").borrowed().exists());
  const TreePtr after = draft.Freeze();
  EXPECT_EQ(after->root()["spec"].Entry("a").integer(), 2);
  EXPECT_EQ(after->root()["spec"].Entry("b").Entry("c").str(), "deep");
  EXPECT_EQ(before->root()["spec"].Entry("a").integer(), 1);
}

TEST(Draft, PartsTakenOutOutliveTheTreeTheyCameFrom) {
  Draft part;
  {
    Draft whole(Draft::Map({{"free.name/x", Draft::Map({{"free.name/y", "value"}})}}).Freeze());
    part = whole.Entry("free.name/x");
  }
  part.Entry("free.name/z") = 1;
  Draft other;
  for (auto& [key, value] : part.MutableMembers()) other.Entry(key->view()) = value;
  part = Draft();
  EXPECT_EQ(other.Freeze()->root().Entry("free.name/y").str(), "value");
}

TEST(Draft, AbsentMembersAndElementsAreLeftOut) {
  Draft draft;
  draft.Entry("gone");
  draft.Entry("list") = Draft::Array({1, Draft(), 2});
  const TreePtr tree = draft.Freeze();
  EXPECT_EQ(tree->root().size(), 1u);
  EXPECT_EQ(tree->root().Entry("list").size(), 2u);
  EXPECT_FALSE(Draft().Freeze()->root().exists());
}

TEST(Draft, FieldsAreFoundAndRemovedInBorrowedAndInChangedObjects) {
  Draft draft(Draft{{"spec", 1}, {"status", 2}}.Freeze());
  EXPECT_TRUE(draft.Has("spec"));
  EXPECT_FALSE(draft.Has("metadata"));
  EXPECT_EQ(draft.Find("metadata"), nullptr);
  EXPECT_TRUE(draft.borrowed().exists());
  ASSERT_NE(draft.Find("status"), nullptr);
  EXPECT_EQ(draft.Find("status")->integer(), 2);
  EXPECT_TRUE(draft.Remove("spec"));
  EXPECT_FALSE(draft.Remove("spec"));
  EXPECT_FALSE(draft.Has("spec"));
  EXPECT_EQ(draft.size(), 1u);
}

TEST(Draft, AFieldIsTheSameMemberByItsCheckedNameAndByItsText) {
  Draft draft;
  draft.Entry("spec") = 1;
  draft["spec"] = 2;
  EXPECT_EQ(draft.size(), 1u);
  EXPECT_EQ(draft.Freeze()->root().Entry("spec").integer(), 2);
}

TEST(Draft, FindChangesNothingThatCanBeSeen) {
  Draft draft(Draft::Map({{"a", 1}}).Freeze());
  EXPECT_EQ(draft.FindEntry("b"), nullptr);
  EXPECT_EQ(draft.size(), 1u);
  ASSERT_NE(draft.FindEntry("a"), nullptr);
  EXPECT_EQ(draft.FindEntry("a")->integer(), 1);
  EXPECT_TRUE(draft.RemoveEntry("a"));
  EXPECT_FALSE(draft.RemoveEntry("a"));
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
  Draft draft = Draft::Map({{"a", Draft::Map({{"b", 5}})}});
  draft = draft.Entry("a");
  EXPECT_EQ(draft.Entry("b").integer(), 5);
  draft = std::move(draft.Entry("b"));
  EXPECT_EQ(draft.integer(), 5);
}

TEST(Draft, RawKeepsItsBytes) {
  const TreePtr tree = Draft{{"parameters", Draft::Raw("{ \"a\" : 1 }")}}.Freeze();
  EXPECT_EQ(tree->root()["parameters"].kind(), ValueKind::kRaw);
  EXPECT_EQ(tree->root()["parameters"].str(), "{ \"a\" : 1 }");
}

TEST(DraftView, ReadsAsTheFrozenTreeAndSharesWhatDidNotChange) {
  const TreePtr before = Draft{
      {"spec", Draft::Map({{"a", 1}, {"b", Draft::Map({{"c", "deep"}})}})},
      {"items",
       Draft::Array({1, 2})}}.Freeze();
  Draft draft(before);
  draft["spec"].Entry("a") = "text";
  draft["spec"].Entry("gone") = Draft();
  draft["spec"].Entry("raw") = Draft::Raw("[1]");
  draft["items"].Append(Draft());
  draft["items"].Append(nullptr);
  draft["items"].Append(2.5);
  draft["items"].Append(true);
  const DraftView view(draft);
  EXPECT_TRUE(Equal(view.root(), draft.Freeze()->root()));
  EXPECT_TRUE(Equal(view.Freeze()->root(), draft.Freeze()->root()));
  EXPECT_EQ(view.root()["spec"].size(), 3u);  // absent members are omitted
  EXPECT_EQ(view.root()["items"].size(), 5u);
  EXPECT_EQ(view.root()["spec"].Entry("b").node()->members,
            before->root()["spec"].Entry("b").node()->members);
}

}  // namespace
}  // namespace drakkar::api
