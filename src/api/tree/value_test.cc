#include "api/tree/value.h"

#include <gtest/gtest.h>

#include "api/tree/draft.h"
#include "api/tree/key_table.h"

namespace drakkar::api {
namespace {

TEST(Value, ReadingWhatIsNotThereGivesAbsentAllTheWay) {
  const Value absent;
  EXPECT_FALSE(absent.exists());
  EXPECT_EQ(absent["spec"]["nodeName"].str("none"), "none");
  EXPECT_FALSE(absent.at(3).Entry("x").at(1).has_value());
  EXPECT_EQ(absent.size(), 0u);
  EXPECT_TRUE(absent.members().empty());
  EXPECT_TRUE(absent.elements().empty());
}

TEST(Value, TypedReadingsGiveTheFallbackForAnotherKind) {
  const TreePtr tree =
      Draft::Map({{"i", 7}, {"d", 2.5}, {"b", true}, {"s", "x"}, {"n", nullptr}}).Freeze();
  const Value root = tree->root();
  EXPECT_EQ(root.Entry("i").integer(), 7);
  EXPECT_EQ(root.Entry("i").number(), 7.0);
  EXPECT_EQ(root.Entry("d").number(), 2.5);
  EXPECT_EQ(root.Entry("d").integer(-1), -1);
  EXPECT_EQ(root.Entry("s").integer(-1), -1);
  EXPECT_TRUE(root.Entry("b").boolean());
  EXPECT_EQ(root.Entry("s").optional_boolean(), std::nullopt);
  EXPECT_TRUE(root.Entry("n").exists());
  EXPECT_FALSE(root.Entry("n").has_value());
}

TEST(Value, EqualIgnoresTheOrderOfMembersAndTheFormOfNumbers) {
  const TreePtr a = Draft::Map({{"x", 1}, {"y", Draft::Array({1, 2.0})}}).Freeze();
  const TreePtr b = Draft::Map({{"y", Draft::Array({1.0, 2})}, {"x", 1}}).Freeze();
  const TreePtr c = Draft::Map({{"y", Draft::Array({2, 1})}, {"x", 1}}).Freeze();
  EXPECT_TRUE(Equal(a->root(), b->root()));
  EXPECT_FALSE(Equal(a->root(), c->root()));
  EXPECT_FALSE(Equal(Draft(std::int64_t{9007199254740993}).Freeze()->root(),
                     Draft(9007199254740992.0).Freeze()->root()));
}

TEST(Value, EqualTellsLargeObjectsInAnyOrderApart) {
  Draft forward = Draft::Object();
  Draft backward = Draft::Object();
  for (int i = 0; i < 100; ++i) forward.Entry(std::to_string(i)) = i;
  for (int i = 99; i >= 0; --i) backward.Entry(std::to_string(i)) = i;
  EXPECT_TRUE(Equal(forward.Freeze()->root(), backward.Freeze()->root()));
  backward.Entry("50") = 51;
  EXPECT_FALSE(Equal(forward.Freeze()->root(), backward.Freeze()->root()));
}

TEST(Value, CopyTreeTakesAPartOutOfALargerTree) {
  TreePtr part;
  {
    const TreePtr whole =
        Draft{{"spec", Draft::Map({{"some.label/x", "v"}, {"list", Draft::Array({"a", nullptr})}})}}
            .Freeze();
    part = CopyTree(whole->root()["spec"]);
    EXPECT_TRUE(Equal(part->root(), whole->root()["spec"]));
    EXPECT_LT(part->size_bytes(), whole->size_bytes());
  }
  EXPECT_EQ(part->root().Entry("some.label/x").str(), "v");
  EXPECT_EQ(part->root().Entry("list").at(0).str(), "a");
}

TEST(KeyTable, FindsEverySchemaNameAndNoOther) {
  const auto keys = SchemaKeys();
  for (std::size_t i = 1; i < keys.size(); ++i) {
    EXPECT_EQ(keys[i].id, i);
    EXPECT_EQ(FindKey(std::string(keys[i].view())), &keys[i]);
  }
  EXPECT_EQ(FindKey(""), nullptr);
  EXPECT_EQ(FindKey("no-such-name-anywhere"), nullptr);
}

}  // namespace
}  // namespace drakkar::api
