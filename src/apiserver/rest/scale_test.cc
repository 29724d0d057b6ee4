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

TEST_F(ScaleTest, RefusesLessThanNothingAndAnOldVersion) {
  EXPECT_EQ(Ask(Verb::kPatch, R"({"spec":{"replicas":-1}})").failure->code, 422);
  EXPECT_EQ(Ask(Verb::kUpdate, R"({"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{)"
                               R"("name":"d","resourceVersion":"1"},"spec":{"replicas":2}})")
                .failure->code,
            409);
}

}  // namespace
}  // namespace drakkar::apiserver
