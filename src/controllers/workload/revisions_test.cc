#include "controllers/workload/revisions.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::controllers {
namespace {

api::ObjectPtr Object(std::string_view json) {
  return std::make_shared<const api::Object>(*api::ParseJson(json));
}

api::ObjectPtr Owner(std::string_view image) {
  return Object(StrCat(R"({"metadata":{"name":"agent","namespace":"default","uid":"u"},
      "spec":{"template":{"spec":{"nodeSelector":{"b":"<2>","a":"1"},"containers":[{"image":")",
                       image, R"("}]},"metadata":{"labels":{"app":"x"}}}}})"));
}

RevisionPlan Plan(const api::ObjectPtr& owner, const std::vector<api::ObjectPtr>& revisions) {
  return PlanRevision({.owner = *owner,
                       .owner_kind = *api::FindKind("apps", "v1", "DaemonSet"),
                       .revisions = revisions,
                       .hash_label = kDaemonHashLabel});
}

TEST(Revisions, ARevisionIsRecordedAsKubeControllerManagerDoes) {
  const RevisionPlan plan = Plan(Owner("i:1"), {});
  ASSERT_NE(plan.write, nullptr);
  const api::Value made = plan.write->root();
  EXPECT_EQ(made["data"].str(),
            R"({"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"x"}},)"
            R"("spec":{"containers":[{"image":"i:1"}],)"
            R"("nodeSelector":{"a":"1","b":"\u003c2\u003e"}}}}})")
      << "sorted and escaped: it compares revisions as text";
  EXPECT_EQ(made["revision"].integer(), 1);
  EXPECT_EQ(made["metadata"]["labels"].Entry("app").str(), "x");
  EXPECT_EQ(made["metadata"]["name"].str(),
            StrCat("agent-", made["metadata"]["labels"].Entry(kDaemonHashLabel).str()));
}

TEST(Revisions, TheTemplateIsFoundAgainWhateverTheOrderAndNulls) {
  const api::ObjectPtr recorded = Object(R"({"metadata":{"name":"r1"},"revision":4,"data":0})");
  api::Draft draft(recorded->tree());
  draft["data"] = api::Draft::Raw(
      R"({"spec":{"template":{"metadata":{"creationTimestamp":null,"labels":{"app":"x"}},)"
      R"("spec":{"nodeSelector":{"a":"1","b":"<2>"},"containers":[{"image":"i:1"}]}}}})");
  const auto revision = std::make_shared<const api::Object>(draft.Freeze());
  const RevisionPlan plan = Plan(Owner("i:1"), {revision});
  EXPECT_EQ(plan.current, revision);
  EXPECT_EQ(plan.write, nullptr);
  const RevisionPlan other = Plan(Owner("i:2"), {revision});
  EXPECT_EQ(other.current, nullptr);
  EXPECT_EQ(other.write->root()["revision"].integer(), 5);
}

TEST(Revisions, OldOnesBeyondTheLimitGoUnlessTheyAreInUse) {
  std::vector<api::ObjectPtr> revisions;
  for (const int number : {4, 1, 3, 2}) {
    revisions.push_back(
        Object(StrCat(R"({"metadata":{"name":"r)", number, R"("},"revision":)", number, "}")));
  }
  const auto surplus = SurplusRevisions(
      revisions, 1, [](const api::Object& each) { return each["revision"].integer() == 1; });
  ASSERT_EQ(surplus.size(), 2u);
  EXPECT_EQ(surplus[0]->name(), "r2");
  EXPECT_EQ(surplus[1]->name(), "r3");
  EXPECT_TRUE(SurplusRevisions(revisions, -1, [](const api::Object&) { return false; }).empty());
}

}  // namespace
}  // namespace drakkar::controllers
