#include "features/features_c.h"

#include <string>

#include <gtest/gtest.h>

namespace {

class FeaturesC : public testing::Test {
 protected:
  using Call = char* (*)(const drakkar_features*, const char*, char**);

  ~FeaturesC() override { drakkar_features_free(handle_); }

  // The result, or "error: " and the message.
  std::string Ask(Call call, const char* input) {
    char* error = nullptr;
    char* answer = call(handle_, input, &error);
    EXPECT_EQ(answer == nullptr, error != nullptr);
    std::string text = answer != nullptr ? std::string(answer)
                                         : "error: " + std::string(error != nullptr ? error : "");
    drakkar_features_free_string(answer);
    drakkar_features_free_string(error);
    return text;
  }

  drakkar_features* handle_ = drakkar_features_new(DRAKKAR_FEATURES_KEP);
};

TEST_F(FeaturesC, PredictsWhatANodeDeclares) {
  EXPECT_EQ(
      Ask(drakkar_features_discover,
          R"({"version":"1.36.1","featureGates":)"
          R"("InPlacePodVerticalScalingInitContainers=false, ExtendWebSocketsToKubelet=false"})"),
      R"({"declaredFeatures":["InPlacePodLevelResourcesVerticalScaling",)"
      R"("RestartAllContainersOnContainerExits"]})");
}

TEST_F(FeaturesC, ReportsWhatAPodAndItsUpdateRequire) {
  EXPECT_EQ(Ask(drakkar_features_require,
                R"({"pod":{"spec":{}},"claims":[{"metadata":{"name":"c"},"status":{"allocation":
                    {"devices":{"results":[{"skipNodeOperations":["*"]}]}}}}]})"),
            R"({"requiredFeatures":[{"name":"DraOptionalNodePreparation","field":)"
            R"("claim c: status.allocation.devices.results[0].skipNodeOperations"}]})");
  EXPECT_EQ(Ask(drakkar_features_require_update,
                R"({"oldPod":{"spec":{}},"pod":{"spec":{"resources":{}}},"version":"1.37"})"),
            R"({"requiredFeatures":[{"name":"InPlacePodLevelResourcesVerticalScaling"}]})");
}

TEST_F(FeaturesC, SpeaksTheNamesOfKubernetesIfAsked) {
  drakkar_features* kubernetes = drakkar_features_new(DRAKKAR_FEATURES_KUBERNETES);
  ASSERT_NE(kubernetes, nullptr);
  char* known = drakkar_features_needs(kubernetes, "DRAOptionalNodeOperations", nullptr);
  EXPECT_NE(known, nullptr);
  drakkar_features_free_string(known);
  EXPECT_EQ(drakkar_features_needs(kubernetes, "DraOptionalNodePreparation", nullptr), nullptr);
  drakkar_features_free(kubernetes);
}

TEST_F(FeaturesC, AnUpdateUsesOurVersionUnlessItNamesOne) {
  EXPECT_EQ(Ask(drakkar_features_require_update,
                R"({"oldPod":{"spec":{}},"pod":{"spec":{"resources":{}}}})"),
            R"({"requiredFeatures":[{"name":"InPlacePodLevelResourcesVerticalScaling"}]})");
}

TEST_F(FeaturesC, MatchesANode) {
  EXPECT_EQ(Ask(drakkar_features_match,
                R"({"required":["VolumeBindMountOptions","ExtendWebSocketsToKubelet"],
                    "node":{"kind":"Node","status":{"declaredFeatures":
                    ["ExtendWebSocketsToKubelet","VolumeBindMountOptions"]}}})"),
            R"({"match":true,"unsatisfied":[]})");
  EXPECT_EQ(Ask(drakkar_features_match,
                R"({"required":["DraOptionalNodePreparation","VolumeBindMountOptions"],
                    "node":{"status":{"declaredFeatures":["DRAOptionalNodeOperations"]}}})"),
            R"({"match":false,"unsatisfied":["VolumeBindMountOptions"]})");
}

TEST_F(FeaturesC, ReportsWhatAFeatureDependsOn) {
  EXPECT_EQ(Ask(drakkar_features_needs, "VolumeBindMountOptions"),
            R"({"name":"VolumeBindMountOptions","featureGates":["VolumeBindMountOptions"],)"
            R"("runtimeFeatures":["MountOptions"]})");
}

TEST_F(FeaturesC, DescribesOurOwnAgent) {
  EXPECT_EQ(Ask(drakkar_features_discover, R"({"version":"1.37","agent":"drakkar"})"),
            R"({"declaredFeatures":["ExtendWebSocketsToKubelet",)"
            R"("RestartAllContainersOnContainerExits"]})");
  EXPECT_EQ(Ask(drakkar_features_discover, R"({"agent":"crio"})"),
            "error: agent must be kubelet or drakkar, not \"crio\"");
}

// Unreadable input must never count as absent: the pod would seem to require nothing, and the node
// to match.
TEST_F(FeaturesC, RejectsInputItDoesNotUnderstand) {
  const auto discover = [&](const char* input) { return Ask(drakkar_features_discover, input); };
  EXPECT_EQ(discover(R"({"version":1.37})"), "error: version must be a string");
  EXPECT_EQ(discover(R"({"featureGates":{"A":true}})"), "error: featureGates must be a string");
  EXPECT_EQ(discover(R"({"runtimeFeatures":["A"]})"), "error: runtimeFeatures must be a string");
  EXPECT_EQ(discover(R"({"kubeletConfiguration":"x"})"),
            "error: kubeletConfiguration must be an object");
  EXPECT_EQ(discover(R"({"gates":""})"),
            "error: unknown key \"gates\"; known keys: version, featureGates, runtimeFeatures, "
            "kubeletConfiguration, agent");

  const auto require = [&](const char* input) { return Ask(drakkar_features_require, input); };
  EXPECT_EQ(require("{}"), "error: pod is missing");
  EXPECT_EQ(require(R"({"pod":[]})"), "error: pod must be an object");
  EXPECT_EQ(require(R"({"pod":{"kind":"Node","spec":{}}})"),
            "error: pod.kind is \"Node\", but must be Pod");
  EXPECT_EQ(require(R"({"pod":{"spec":{"hostUsers":"false"}}})"),
            "error: pod.spec.hostUsers must be true or false");
  EXPECT_EQ(require(R"({"pod":{"spec":{"containers":{}}}})"),
            "error: pod.spec.containers must be a list");
  EXPECT_EQ(require(R"({"pod":{"spec":{"containers":[null]}}})"),
            "error: pod.spec.containers[0] must not be null");
  EXPECT_EQ(require(R"({"pod":{"spec":{"initContainers":[{},{"restartPolicyRules":[{"action":1}]}
            ]}}})"),
            "error: pod.spec.initContainers[1].restartPolicyRules[0].action must be a string");
  EXPECT_EQ(require(R"({"pod":{"spec":{}},"claims":{}})"), "error: claims must be a list");
  EXPECT_EQ(require(R"({"pod":{"spec":{}},"claims":[{},7]})"),
            "error: claims[1] must be an object");
  EXPECT_EQ(require(R"({"pod":{"spec":{}},"claims":[{"status":{"allocation":{"devices":{"results":
            [{"skipNodeOperations":"*"}]}}}}]})"),
            "error: claims[0].status.allocation.devices.results[0].skipNodeOperations must be "
            "true, false or a list of operations");
  EXPECT_EQ(require(R"({"pod":{"spec":{}},"version":1})"), "error: version must be a string");
  EXPECT_EQ(require(R"({"pod":{"spec":{}},"claim":[]})"),
            "error: unknown key \"claim\"; known keys: pod, claims, version");

  EXPECT_EQ(require(R"({"pod":{"kind":7,"spec":{}}})"),
            "error: pod.kind is not a string, but must be Pod");
  EXPECT_EQ(require(R"({"pod":{"metadata":{"name":1},"spec":{}}})"),
            "error: pod.metadata.name must be a string");
  for (const char* limit : {"{}", "[]", "true"}) {
    const std::string pod = R"({"pod":{"spec":{"volumes":[{},{"emptyDir":{"sizeLimit":)" +
                            std::string(limit) + "}}]}}}";
    EXPECT_EQ(require(pod.c_str()),
              "error: pod.spec.volumes[1].emptyDir.sizeLimit must be a quantity");
  }
  EXPECT_EQ(require(R"({"pod":{"spec":{"ephemeralContainers":[{"volumeMounts":[
            {"bindMountOptions":["a",1]}]}]}}})"),
            "error: pod.spec.ephemeralContainers[0].volumeMounts[0].bindMountOptions[1] must be a "
            "string");
  EXPECT_EQ(require(R"({"pod":{"spec":{"containers":[{},7]}}})"),
            "error: pod.spec.containers[1] must be an object");
  EXPECT_EQ(require(R"({"pod":{"spec":{}},"claims":[{"kind":"Pod"}]})"),
            "error: claims[0].kind is \"Pod\", but must be ResourceClaim");
  EXPECT_EQ(require(R"({"pod":{"spec":{}},"claims":[{"status":{"allocation":{"devices":{"results":
            [{"skipNodeOperations":["*",1]}]}}}}]})"),
            "error: claims[0].status.allocation.devices.results[0].skipNodeOperations must be "
            "true, false or a list of operations");
  EXPECT_EQ(require(R"({"pod":{"spec":{}},"version":"x"})"),
            "error: version \"x\" is invalid; use for example 1.37 or 1.37.2");

  EXPECT_EQ(Ask(drakkar_features_require_update,
                R"({"oldPod":{"spec":{"resources":[]}},"pod":{"spec":{}}})"),
            "error: oldPod.spec.resources must be an object");
  EXPECT_EQ(Ask(drakkar_features_require_update, R"({"oldPod":{"spec":{}},"pods":{"spec":{}}})"),
            "error: unknown key \"pods\"; known keys: oldPod, pod, version");
  EXPECT_EQ(Ask(drakkar_features_require_update,
                R"({"oldPod":{"spec":{}},"pod":{"spec":{"resources":[]}}})"),
            "error: pod.spec.resources must be an object");
  EXPECT_EQ(Ask(drakkar_features_require_update,
                R"({"oldPod":{"spec":{}},"pod":{"spec":{}},"version":1.37})"),
            "error: version must be a string");

  const auto match = [&](const char* input) { return Ask(drakkar_features_match, input); };
  EXPECT_EQ(match("{}"), "error: required must be a list of strings");
  EXPECT_EQ(match(R"({"required":{},"node":{}})"), "error: required must be a list of strings");
  EXPECT_EQ(match(R"({"required":[],"node":"n"})"), "error: node must be an object");
  EXPECT_EQ(match(R"({"required":[],"node":{"status":{"declaredFeatures":"A"}}})"),
            "error: node.status.declaredFeatures must be a list");
  EXPECT_EQ(match(R"({"required":[],"node":{"status":{"declaredFeatures":[1]}}})"),
            "error: node.status.declaredFeatures[0] must be a string");
  EXPECT_EQ(match(R"({"requires":["X"],"node":{}})"),
            "error: unknown key \"requires\"; known keys: required, node");
}

TEST_F(FeaturesC, AcceptsUnknownFieldsOfKubernetes) {
  EXPECT_EQ(Ask(drakkar_features_require,
                R"({"pod":{"apiVersion":"v1","kind":"Pod","spec":{"newField":1,"hostUsers":null,
                    "volumes":[{"emptyDir":{"sizeLimit":"1Mi"}},{"emptyDir":{"sizeLimit":5}}],
                    "containers":[{"name":"a","another":{}}]}},"claims":null,"version":null})"),
            R"({"requiredFeatures":[]})");
}

TEST_F(FeaturesC, FailsWithAMessage) {
  EXPECT_EQ(Ask(drakkar_features_discover, nullptr), "error: the input must not be null");
  EXPECT_EQ(Ask(drakkar_features_discover, "[]"), "error: the input must be a JSON object");
  EXPECT_EQ(Ask(drakkar_features_require, R"({"pod":{}})"), "error: pod has no spec");
  EXPECT_EQ(Ask(drakkar_features_require_update, R"({"pod":{"spec":{}}})"),
            "error: oldPod is missing");
  EXPECT_EQ(Ask(drakkar_features_match, R"({"required":["X"],"node":{}})"),
            "error: unknown feature X");
  EXPECT_EQ(Ask(drakkar_features_match, R"({"required":[]})"), "error: node is missing");
  EXPECT_EQ(Ask(drakkar_features_match, R"({"required":[1],"node":{}})"),
            "error: required must be a list of strings");
  EXPECT_EQ(Ask(drakkar_features_needs, "X"), "error: feature 'X' not registered");
  EXPECT_EQ(Ask(drakkar_features_needs, nullptr), "error: `name` must not be null");
  // The error argument is optional.
  EXPECT_EQ(drakkar_features_needs(handle_, "X", nullptr), nullptr);
  EXPECT_EQ(drakkar_features_new(7), nullptr);
}

}  // namespace
