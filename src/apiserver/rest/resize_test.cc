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
  EXPECT_EQ(container["resources"]["requests"].Entry("cpu").str(), "2");
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

TEST_F(ResizeTest, KeepsTheQosClassAndOtherResources) {
  EXPECT_EQ(Resize(R"({"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1",)"
                   R"("memory":"1Gi"},"requests":{"cpu":"1","memory":"1Gi"}}}]}})")
                .failure->code,
            422);
  EXPECT_EQ(Resize(R"({"spec":{"containers":[{"name":"c","resources":{"requests":{)"
                   R"("example.com/gpu":"1"}}}]}})")
                .failure->code,
            422);
}

TEST_F(ResizeTest, ChangesPodLevelResourcesIfTheirGateIsOn) {
  Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"whole"},"spec":{"resources":{)"
         R"("requests":{"cpu":"1"}},"containers":[{"name":"c","image":"i:1"}]}})");
  const auto cpu = [&] {
    return std::string(core_->Find("", "pods", "default/whole")
                           ->root()["spec"]["resources"]["requests"]
                           .Entry("cpu")
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
  const Response refused = Resize(R"({"spec":{"resources":{"requests":{"cpu":"3"}}}})", "whole");
  ASSERT_TRUE(refused.failure) << "it would not be done";
  EXPECT_EQ(refused.failure->message,
            "Pod \"whole\" is invalid: spec: Forbidden: resize of pods with pod-level resources is "
            "forbidden when InPlacePodLevelResourcesVerticalScalingEnabled feature gate is "
            "disabled");
  EXPECT_EQ(cpu(), "2");
}

std::string Message(const Response& response) {
  return response.failure ? response.failure->message : "";
}

TEST_F(ResizeTest, OfAMemoryVolumeNeedsItsGate) {
  Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"v"},"spec":{"volumes":[)"
         R"({"name":"m","emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}},)"
         R"({"name":"d","emptyDir":{"sizeLimit":"1Mi"}}],"containers":[{"name":"c","image":"i",)"
         R"("resources":{"requests":{"cpu":"1"}}}]}})");
  const std::string grow = R"({"spec":{"volumes":[{"name":"m","emptyDir":{"sizeLimit":"2Mi"}}]}})";
  EXPECT_EQ(Message(Resize(grow, "v")),
            "Pod \"v\" is invalid: spec.volumes: Forbidden: volumes are immutable on resize when "
            "InPlacePodVerticalScalingMemoryBackedVolumes feature gate is disabled");
  gates_ = FeatureGates().With(Gate::kInPlacePodVerticalScalingMemoryBackedVolumes, true);
  EXPECT_EQ(Message(Resize(grow, "v")), "");
  EXPECT_EQ(core_->Find("", "pods", "default/v")
                ->root()["spec"]["volumes"]
                .at(0)["emptyDir"]["sizeLimit"]
                .str(),
            "2Mi");
  EXPECT_EQ(
      Message(Resize(R"({"spec":{"volumes":[{"name":"d","emptyDir":{"sizeLimit":"2Mi"}}]}})", "v")),
      "Pod \"v\" is invalid: spec.volumes[1].emptyDir.sizeLimit: Forbidden: sizeLimit is "
      "only mutable for memory-backed emptyDir volumes");
  EXPECT_EQ(Message(Resize(R"({"spec":{"volumes":[{"name":"m","emptyDir":{"medium":""}}]}})", "v")),
            "Pod \"v\" is invalid: spec.volumes[0]: Forbidden: only sizeLimit of memory-backed "
            "emptyDir volumes is mutable on resize");
  EXPECT_EQ(
      Message(Resize(R"({"spec":{"volumes":[{"name":"m","emptyDir":{"sizeLimit":null}}]}})", "v")),
      "Pod \"v\" is invalid: spec.volumes[0].emptyDir.sizeLimit: Forbidden: adding or "
      "removing sizeLimit on an existing volume is not allowed");
  EXPECT_EQ(Message(Resize(R"({"spec":{"volumes":[{"name":"new","emptyDir":{}}]}})", "v")),
            "Pod \"v\" is invalid: spec.volumes: Forbidden: volumes may not be added or removed on "
            "resize");
}

TEST_F(ResizeTest, ThatWouldHaveNoEffectIsRejected) {
  Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"i"},"spec":{"initContainers":[)"
         R"({"name":"first","image":"i","resources":{"requests":{"cpu":"1"}}}],"containers":[)"
         R"({"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}})");
  EXPECT_EQ(Message(Resize(R"({"spec":{"containers":[{"name":"other","image":"i"}]}})", "i")),
            "Pod \"i\" is invalid: spec.containers: Forbidden: containers may not be added or "
            "removed on resize");
  EXPECT_EQ(
      Message(Resize(
          R"({"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":null}}}]}})", "i")),
      "Pod \"i\" is invalid: spec.containers[0].resources.requests: Forbidden: resource "
      "requests cannot be removed");
  EXPECT_EQ(Message(Resize(R"({"spec":{"containers":[{"name":"c","resizePolicy":[{"resourceName":)"
                           R"("cpu","restartPolicy":"RestartContainer"}]}]}})",
                           "i")),
            "Pod \"i\" is invalid: spec: Forbidden: only cpu and memory resources are mutable");
  gates_ = FeatureGates().With(Gate::kInPlacePodVerticalScalingInitContainers, false);
  EXPECT_EQ(Message(Resize(R"({"spec":{"initContainers":[{"name":"first","resources":)"
                           R"({"requests":{"cpu":"2"}}}]}})",
                           "i")),
            "Pod \"i\" is invalid: spec: Forbidden: resources for non-sidecar init containers are "
            "immutable");
  gates_ = FeatureGates().With(Gate::kInPlacePodVerticalScaling, false);
  EXPECT_NE(
      Message(Resize(
          R"({"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"3"}}}]}})", "i")),
      "");
}

TEST_F(ResizeTest, OfAStaticPodIsRejected) {
  Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"s","annotations":{)"
         R"("kubernetes.io/config.mirror":"x"}},"spec":{"nodeName":"n","containers":[)"
         R"({"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}})");
  EXPECT_EQ(
      Message(Resize(
          R"({"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"3"}}}]}})", "s")),
      "Pod \"s\" is invalid: spec: Forbidden: static pods cannot be resized");
}

}  // namespace
}  // namespace drakkar::apiserver
