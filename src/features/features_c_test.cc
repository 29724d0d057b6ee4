#include "features/features_c.h"

#include <string>

#include <gtest/gtest.h>

namespace {

class FeaturesC : public testing::Test {
 protected:
  using Call = char* (*)(const drakkar_features*, const char*, char**);

  ~FeaturesC() override { drakkar_features_free(handle_); }

  // The answer, or "error: " and the sentence.
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

TEST_F(FeaturesC, ForeseesWhatANodeDeclares) {
  EXPECT_EQ(Ask(drakkar_features_discover,
                R"({"version":"1.36.1","featureGates":)"
                R"("InPlacePodVerticalScalingInitContainers=false, ExtendWebSocketsToKubelet=false"})"),
            R"({"declaredFeatures":["InPlacePodLevelResourcesVerticalScaling",)"
            R"("RestartAllContainersOnContainerExits"]})");
}

TEST_F(FeaturesC, SaysWhatAPodAndItsUpdateNeed) {
  EXPECT_EQ(Ask(drakkar_features_require,
                R"({"pod":{"spec":{}},"claims":[{"metadata":{"name":"c"},"status":{"allocation":
                    {"devices":{"results":[{"skipNodeOperations":["*"]}]}}}}]})"),
            R"({"requiredFeatures":[{"name":"DraOptionalNodePreparation","field":)"
            R"("claim c: status.allocation.devices.results[0].skipNodeOperations"}]})");
  EXPECT_EQ(Ask(drakkar_features_require_update,
                R"({"oldPod":{"spec":{}},"pod":{"spec":{"resources":{}}},"version":"1.37"})"),
            R"({"requiredFeatures":[{"name":"InPlacePodLevelResourcesVerticalScaling"}]})");
}

TEST_F(FeaturesC, MatchesANode) {
  EXPECT_EQ(Ask(drakkar_features_match,
                R"({"required":["DraOptionalNodePreparation","VolumeBindMountOptions"],
                    "node":{"status":{"declaredFeatures":["DRAOptionalNodeOperations"]}}})"),
            R"({"match":false,"unsatisfied":["VolumeBindMountOptions"]})");
}

TEST_F(FeaturesC, SaysWhatAFeatureNeeds) {
  EXPECT_EQ(Ask(drakkar_features_needs, "VolumeBindMountOptions"),
            R"({"name":"VolumeBindMountOptions","featureGates":["VolumeBindMountOptions"],)"
            R"("runtimeFeatures":["MountOptions"]})");
}

TEST_F(FeaturesC, FailsWithASentence) {
  EXPECT_EQ(Ask(drakkar_features_discover, nullptr), "error: the input is missing");
  EXPECT_EQ(Ask(drakkar_features_discover, "[]"), "error: the input must be a JSON object");
  EXPECT_EQ(Ask(drakkar_features_require, R"({"pod":{}})"), "error: the pod has no spec");
  EXPECT_EQ(Ask(drakkar_features_require_update, R"({"pod":{"spec":{}}})"),
            "error: oldPod must be a pod with a spec");
  EXPECT_EQ(Ask(drakkar_features_match, R"({"required":["X"],"node":{}})"),
            "error: unknown feature X");
  EXPECT_EQ(Ask(drakkar_features_match, R"({"required":[]})"), "error: node cannot be nil");
  EXPECT_EQ(Ask(drakkar_features_match, R"({"required":[1],"node":{}})"),
            "error: required must be a list of strings");
  EXPECT_EQ(Ask(drakkar_features_needs, "X"), "error: feature 'X' not registered");
  EXPECT_EQ(Ask(drakkar_features_needs, nullptr), "error: the name is missing");
  // Nobody has to ask for the sentence.
  EXPECT_EQ(drakkar_features_needs(handle_, "X", nullptr), nullptr);
  EXPECT_EQ(drakkar_features_new(7), nullptr);
}

}  // namespace
