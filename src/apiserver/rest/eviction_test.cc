#include "apiserver/rest/eviction.h"

#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class EvictionTest : public CoreFixture {
 protected:
  EvictionTest() { StartCore(nullptr); }

  void CreatePod(std::string_view name, bool ready) {
    Create(StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                  R"(","labels":{"app":"a"}},"spec":{"nodeName":"n","containers":[{"name":"c",)",
                  R"("image":"i:1"}]}})"));
    Request status;
    status.user = AdminUser();
    status.verb = Verb::kPatch;
    status.kind = api::FindKind("", "v1", "Pod");
    status.namespace_ = "default";
    status.name = name;
    status.subresource = "status";
    status.text = StrCat(R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":")",
                         ready ? "True" : "False", R"("}]}})");
    EXPECT_FALSE(Handle(std::move(status)).failure);
  }
  Response Evict(std::string name, std::string_view options = "{}",
                 std::string_view version = "policy/v1") {
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kCreate;
    request.kind = api::FindKind("", "v1", "Pod");
    request.namespace_ = "default";
    request.name = std::move(name);
    request.subresource = "eviction";
    request.text = StrCat(R"({"apiVersion":")", version, R"(","kind":"Eviction","deleteOptions":)",
                          options, "}");
    return Handle(std::move(request));
  }
  void CreateBudget(std::string_view rule) {
    Create(
        StrCat(R"({"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"b"},)",
               R"("spec":{"selector":{"matchLabels":{"app":"a"}},)", rule, "}}"));
  }
  bool IsGoing(const std::string& name) {
    const api::ObjectPtr pod = core_->Find("", "pods", "default/" + name);
    return pod == nullptr || pod->is_being_deleted();
  }
};

TEST_F(EvictionTest, IsAcceptedInTheOlderVersion) {
  CreatePod("old", true);
  EXPECT_EQ(Evict("old", "{}", "policy/v1beta1").http_status, 201);
  EXPECT_EQ(Evict("old", "{}", "policy/v2").http_status, 400);
}

TEST_F(EvictionTest, DeletesThePodWithTheGivenGrace) {
  CreatePod("p", true);
  const Response evicted = Evict("p", R"({"gracePeriodSeconds":0})");
  ASSERT_FALSE(evicted.failure) << evicted.failure->message;
  EXPECT_EQ(evicted.http_status, 201);
  EXPECT_EQ((*evicted.object)["status"].str(), "Success");
  EXPECT_EQ(core_->Find("", "pods", "default/p"), nullptr);
  EXPECT_EQ(Evict("p").http_status, 404);
}

TEST_F(EvictionTest, ThePodSaysThatItWasEvicted) {
  CreatePod("p", true);
  EXPECT_EQ(Evict("p").http_status, 201);
  const api::ObjectPtr pod = core_->Find("", "pods", "default/p");
  ASSERT_NE(pod, nullptr) << "it has 30 seconds";
  EXPECT_TRUE(pod->is_being_deleted());
  const api::Value conditions = (*pod)["status"]["conditions"];
  ASSERT_EQ(conditions.size(), 2u);
  EXPECT_EQ(conditions.at(1)["type"].str(), "DisruptionTarget");
  EXPECT_EQ(conditions.at(1)["reason"].str(), "EvictionByEvictionAPI");
}

TEST_F(EvictionTest, APreconditionIsAboutTheVersionBeforeTheEviction) {
  CreatePod("p", true);
  EXPECT_EQ(Evict("p", R"({"preconditions":{"resourceVersion":"1"}})").failure->code, 409);
  const api::ObjectPtr pod = core_->Find("", "pods", "default/p");
  EXPECT_EQ((*pod)["status"]["conditions"].size(), 1u) << "it stays";
  const std::string version = std::to_string(pod->resource_version());
  EXPECT_EQ(
      Evict("p", StrCat(R"({"preconditions":{"resourceVersion":")", version, "\"}}")).http_status,
      201);
}

TEST_F(EvictionTest, ABudgetProtectsPodsItNeeds) {
  CreatePod("p", true);
  CreatePod("q", true);
  CreateBudget(R"("minAvailable":1)");
  EXPECT_FALSE(Evict("p").failure);
  EXPECT_TRUE(IsGoing("p"));
  const Response refused = Evict("q");
  ASSERT_TRUE(refused.failure.has_value());
  EXPECT_EQ(refused.failure->code, 429);
  EXPECT_EQ(refused.failure->message,
            "Cannot evict pod as it would violate the pod's disruption budget.");
  ASSERT_EQ(refused.failure->causes.size(), 1u);
  EXPECT_EQ(refused.failure->causes[0].message,
            "The disruption budget b needs 1 healthy pods and has 1 currently");
}

TEST_F(EvictionTest, PercentagesRoundUpAndADryRunDeletesNothing) {
  CreatePod("p", true);
  CreatePod("q", true);
  CreatePod("r", true);
  CreateBudget(R"("maxUnavailable":"10%")");
  EXPECT_FALSE(Evict("p", R"({"dryRun":["All"]})").failure);
  EXPECT_FALSE(IsGoing("p"));
  EXPECT_FALSE(Evict("p").failure);
  EXPECT_TRUE(Evict("q").failure.has_value());
}

}  // namespace
}  // namespace drakkar::apiserver
