// pods/resize: what it changes and what it does not.
#include "apiserver/testing/core_fixture.h"

namespace drakkar::apiserver {
namespace {

class ResizeTest : public CoreFixture {
 protected:
  ResizeTest() {
    StartCore(nullptr);
    Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{)"
           R"("name":"c","image":"i:1","resources":{"requests":{"cpu":"1"}}}]}})");
  }
  Response Resize(std::string patch) {
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kPatch;
    request.patch = PatchKind::kStrategicMerge;
    request.kind = api::FindKind("", "v1", "Pod");
    request.namespace_ = "default";
    request.name = "p";
    request.subresource = "resize";
    request.text = std::move(patch);
    return Handle(std::move(request));
  }
};

TEST_F(ResizeTest, ChangesRequestsAndNothingElse) {
  const Response resized = Resize(
      R"({"metadata":{"labels":{"x":"y"}},"spec":{"nodeName":"n","containers":[{"name":"c",)"
      R"("image":"other:2","resources":{"requests":{"cpu":"2"}}}]}})");
  ASSERT_FALSE(resized.failure) << resized.failure->message;
  const api::Value container = (*resized.object)["spec"]["containers"].at(0);
  EXPECT_EQ(container["resources"]["requests"]["cpu"].str(), "2");
  EXPECT_EQ(container["image"].str(), "i:1");
  EXPECT_EQ((*resized.object)["spec"]["nodeName"].str(), "");
  EXPECT_FALSE((*resized.object)["metadata"]["labels"].exists());
}

TEST_F(ResizeTest, KeepsTheClassOfServiceAndOtherResources) {
  EXPECT_EQ(Resize(R"({"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1",)"
                   R"("memory":"1Gi"},"requests":{"cpu":"1","memory":"1Gi"}}}]}})")
                .failure->code,
            422);
  EXPECT_EQ(Resize(R"({"spec":{"containers":[{"name":"c","resources":{"requests":{)"
                   R"("example.com/gpu":"1"}}}]}})")
                .failure->code,
            422);
}

}  // namespace
}  // namespace drakkar::apiserver
