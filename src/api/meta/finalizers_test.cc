#include "api/meta/finalizers.h"

#include <gtest/gtest.h>

#include "api/json/writer.h"

namespace drakkar::api {
namespace {

Draft Metadata(std::initializer_list<const char*> finalizers) {
  Draft metadata = Draft::Object();
  for (const char* each : finalizers) metadata["finalizers"].Append(each);
  return metadata;
}

std::string Json(const Draft& draft) {
  const TreePtr tree = draft.Freeze();
  return WriteJson(tree->root());
}

TEST(Finalizers, AreFoundByTheirWholeName) {
  const TreePtr tree = Metadata({"a/b", "orphan"}).Freeze();
  EXPECT_TRUE(HasFinalizer(tree->root(), kOrphanFinalizer));
  EXPECT_TRUE(HasFinalizer(tree->root(), "a/b"));
  EXPECT_FALSE(HasFinalizer(tree->root(), "a"));
  EXPECT_FALSE(HasFinalizer(Value(), "a/b"));
}

TEST(Finalizers, OthersAreToldFromTheOneAskedAbout) {
  const TreePtr both = Metadata({"a/b", "c/d"}).Freeze();
  const TreePtr one = Metadata({"a/b"}).Freeze();
  EXPECT_TRUE(HasFinalizerOtherThan(both->root(), "a/b"));
  EXPECT_FALSE(HasFinalizerOtherThan(one->root(), "a/b"));
  EXPECT_TRUE(HasFinalizerOtherThan(one->root(), "c/d"));
  EXPECT_FALSE(HasFinalizerOtherThan(Value(), "a/b"));
}

TEST(Finalizers, TheListIsMadeWithTheFirstAndRemovedWithTheLast) {
  Draft metadata = Draft::Object();
  AddFinalizer(metadata, "a/b");
  AddFinalizer(metadata, "c/d");
  EXPECT_EQ(Json(metadata), R"({"finalizers":["a/b","c/d"]})");
  RemoveFinalizer(metadata, "a/b");
  EXPECT_EQ(Json(metadata), R"({"finalizers":["c/d"]})");
  RemoveFinalizer(metadata, "e/f");
  EXPECT_EQ(Json(metadata), R"({"finalizers":["c/d"]})");
  RemoveFinalizer(metadata, "c/d");
  EXPECT_EQ(Json(metadata), "{}");
  RemoveFinalizer(metadata, "c/d");
  EXPECT_EQ(Json(metadata), "{}");
}

}  // namespace
}  // namespace drakkar::api
