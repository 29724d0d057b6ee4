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
  Response Resize(std::string patch, std::string name = "p") {
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kPatch;
    request.patch = PatchKind::kStrategicMerge;
    request.kind = api::FindKind("", "v1", "Pod");
    request.namespace_ = "default";
    request.name = std::move(name);
    request.subresource = "resize";
    request.text = std::move(patch);
    return Handle(std::move(request));
  }
};

TEST_F(ResizeTest, ChangesRequestsAndNothingElse) {
  const Response resized =
      Resize(R"({"metadata":{"labels":{"x":"y"}},"spec":{"nodeName":"n","containers":[{"name":"c",)"
             R"("image":"other:2","resources":{"requests":{"cpu":"2"}}}]}})");
  ASSERT_FALSE(resized.failure) << resized.failure->message;
  const api::Value container = (*resized.object)["spec"]["containers"].at(0);
  EXPECT_EQ(container["resources"]["requests"]["cpu"].str(), "2");
  EXPECT_EQ(container["image"].str(), "i:1");
  EXPECT_EQ((*resized.object)["spec"]["nodeName"].str(), "");
  EXPECT_FALSE((*resized.object)["metadata"]["labels"].exists());
}

TEST_F(ResizeTest, CanBeReadAsThePod) {
  Request request;
  request.user = AdminUser();
  request.kind = api::FindKind("", "v1", "Pod");
  request.namespace_ = "default";
  request.name = "p";
  request.subresource = "resize";
  const Response read = Handle(std::move(request));
  ASSERT_FALSE(read.failure) << read.failure->message;
  EXPECT_EQ(read.object->kind(), "Pod");
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

TEST_F(ResizeTest, ChangesTheResourcesOfThePodAsAWholeWhileTheirGateIsOn) {
  Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"whole"},"spec":{"resources":{)"
         R"("requests":{"cpu":"1"}},"containers":[{"name":"c","image":"i:1"}]}})");
  const auto cpu = [&] {
    return std::string(core_->Find("", "pods", "default/whole")
                           ->root()["spec"]["resources"]["requests"]["cpu"]
                           .str());
  };
  EXPECT_EQ(core_->Find("", "pods", "default/whole")->root()["status"]["qosClass"].str(),
            "Burstable");
  EXPECT_FALSE(Resize(R"({"spec":{"resources":{"requests":{"cpu":"2"}}}})", "whole").failure);
  EXPECT_EQ(cpu(), "2");
  EXPECT_EQ(Resize(R"({"spec":{"resources":{"requests":{"cpu":"2","memory":"1Gi"},)"
                   R"("limits":{"cpu":"2","memory":"1Gi"}}}})",
                   "whole")
                .failure->code,
            422)
      << "its class of service would change";
  EXPECT_EQ(Resize(R"({"spec":{"resources":{"requests":{"hugepages-2Mi":"4Mi"}}}})", "whole")
                .failure->code,
            422);
  gates_ = FeatureGates().With(Gate::kInPlacePodLevelResourcesVerticalScaling, false);
  EXPECT_FALSE(Resize(R"({"spec":{"resources":{"requests":{"cpu":"3"}}}})", "whole").failure);
  EXPECT_EQ(cpu(), "2") << "a server that does not know better leaves them";
}

}  // namespace
}  // namespace drakkar::apiserver
