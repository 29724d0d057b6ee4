#include "apiserver/rest/scale.h"

#include "api/json/writer.h"
#include "apiserver/testing/core_fixture.h"

namespace drakkar::apiserver {
namespace {

class ScaleTest : public CoreFixture {
 protected:
  ScaleTest() {
    StartCore(nullptr);
    Create(R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{)"
           R"("replicas":1,"selector":{"matchLabels":{"app":"d"}},"template":{"metadata":)"
           R"({"labels":{"app":"d"}},"spec":{"containers":[{"name":"c","image":"i:1"}]}}}})");
  }
  Response Ask(Verb verb, std::string text = "") {
    Request request;
    request.user = AdminUser();
    request.verb = verb;
    request.patch = PatchKind::kMerge;
    request.kind = api::FindKind("apps", "v1", "Deployment");
    request.namespace_ = "default";
    request.name = "d";
    request.subresource = "scale";
    request.text = std::move(text);
    return Handle(std::move(request));
  }
};

TEST_F(ScaleTest, ReadsAndChangesTheReplicasOfAWorkload) {
  const Response read = Ask(Verb::kGet);
  ASSERT_FALSE(read.failure) << read.failure->message;
  EXPECT_EQ(read.object->kind(), "Scale");
  EXPECT_EQ((*read.object)["status"]["selector"].str(), "app=d");
  const Response patched = Ask(Verb::kPatch, R"({"spec":{"replicas":3}})");
  ASSERT_FALSE(patched.failure) << patched.failure->message;
  EXPECT_EQ((*patched.object)["spec"]["replicas"].integer(), 3);
  EXPECT_EQ((*core_->Find("apps", "deployments", "default/d"))["spec"]["replicas"].integer(), 3);
}

TEST_F(ScaleTest, AppliesTheReplicasUnderTheFieldManager) {
  auto apply = [&](std::string text, std::string manager, bool force = false) {
    return Apply(*api::FindKind("apps", "v1", "Deployment"), "d", "scale", std::move(manager),
                 std::move(text), force);
  };
  const Response applied =
      apply("apiVersion: autoscaling/v1\nkind: Scale\nmetadata: {name: d}\nspec: {replicas: 4}\n",
            "hpa", true);
  ASSERT_FALSE(applied.failure) << applied.failure->message;
  EXPECT_EQ(applied.object->kind(), "Scale");
  EXPECT_EQ((*applied.object)["spec"]["replicas"].integer(), 4);
  const api::ObjectPtr workload = core_->Find("apps", "deployments", "default/d");
  EXPECT_EQ((*workload)["spec"]["template"]["spec"]["containers"].size(), 1u) << "the rest stays";
  std::string owned;
  for (api::Value entry : (*workload)["metadata"]["managedFields"].elements()) {
    if (entry["manager"].str() == "hpa") {
      owned = std::string(entry["subresource"].str()) + " " + std::string(entry["fieldsV1"].str());
    }
  }
  EXPECT_EQ(owned, R"(scale {"f:spec":{"f:replicas":{}}})");
  const Response refused =
      apply("apiVersion: autoscaling/v1\nkind: Scale\nmetadata: {name: d}\nspec: {replicas: 5}\n",
            "other");
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->message,
            "Apply failed with 1 conflict: conflict with \"hpa\" with subresource \"scale\": "
            ".spec.replicas");
  EXPECT_EQ(
      apply("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n", "x").failure->code,
      400);
  EXPECT_EQ(
      apply("apiVersion: autoscaling/v1\nkind: Scale\nmetadata: {name: d}\nspec: {replicas: -1}\n",
            "x")
          .failure->code,
      422);
}

TEST_F(ScaleTest, RejectsNegativeReplicasAndAnOldVersion) {
  EXPECT_EQ(Ask(Verb::kPatch, R"({"spec":{"replicas":-1}})").failure->code, 422);
  EXPECT_EQ(Ask(Verb::kUpdate, R"({"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{)"
                               R"("name":"d","resourceVersion":"1"},"spec":{"replicas":2}})")
                .failure->code,
            409);
}

}  // namespace
}  // namespace drakkar::apiserver
