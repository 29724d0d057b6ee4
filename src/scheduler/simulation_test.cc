#include "scheduler/simulation.h"

#include <gtest/gtest.h>

#include "allocator/testing/simple_expressions.h"
#include "api/json/reader.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"

namespace drakkar::scheduler {
namespace {

api::ObjectPtr Parse(std::string_view json) {
  return std::make_shared<const api::Object>(api::ParseJson(json).value());
}

class SimulationTest : public ::testing::Test {
 protected:
  SimulationTest() {
    SetNode("[]");
    simulation_.slices.push_back(Parse(R"({"metadata":{"name":"s"},"spec":{"driver":"d.example.com",
      "nodeName":"template","pool":{"name":"pool","generation":1,"resourceSliceCount":1},
      "devices":[{"name":"dev-0"}]}})"));
    simulation_.classes.push_back(Parse(R"({"metadata":{"name":"gpu"},"spec":{}})"));
    simulation_.claims.push_back(Parse(R"({"metadata":{"namespace":"default","name":"c","uid":"cu",
      "resourceVersion":"1"},"spec":{"devices":{"requests":[{"name":"req","exactly":{
      "deviceClassName":"gpu","allocationMode":"ExactCount","count":1}}]}}})"));
    simulation_.pod = Parse(R"({"metadata":{"namespace":"default","name":"p","uid":"pu"},"spec":{
      "containers":[{"name":"c","restartPolicyRules":[{"action":"RestartAllContainers"}]}],
      "resourceClaims":[{"name":"r","resourceClaimName":"c"}]}})");
  }
  void SetNode(std::string features) {
    simulation_.nodes = {Parse(StrCat(R"({"metadata":{"name":"template"},"status":{"allocatable":{
      "cpu":"4","memory":"8Gi","pods":"10"},"declaredFeatures":)",
                                      features, "}}"))};
  }
  SimulationAnswer Ask(FeatureGates gates = FeatureGates()) {
    return Simulate(simulation_, {.loop = loop_,
                                  .random = loop_.random(),
                                  .compiler = expressions_,
                                  .gates = gates,
                                  .declared_features = nullptr})
        .value();
  }

  SeededLoop loop_;
  allocator::SimpleExpressions expressions_;
  Simulation simulation_;
};

TEST_F(SimulationTest, ANodeThatDeclaresWhatThePodNeedsTakesItWithItsDevices) {
  EXPECT_EQ(Ask().message,
            "0/1 nodes are available: 1 node(s) did not match node declared features: "
            "RestartAllContainersOnContainerExits.");
  SetNode(R"(["RestartAllContainersOnContainerExits"])");
  for (int i = 0; i < 2; ++i) {
    const SimulationAnswer answer = Ask();
    EXPECT_TRUE(answer.fits) << answer.message;
    EXPECT_EQ(answer.node, "template");
    ASSERT_EQ(answer.devices.size(), 1u);
    EXPECT_EQ(answer.devices[0].claim, "c");
    EXPECT_EQ(answer.devices[0].device, "dev-0");
  }
}

TEST_F(SimulationTest, DevicesAndClaimsMustExist) {
  SetNode(R"(["RestartAllContainersOnContainerExits"])");
  simulation_.slices.clear();
  EXPECT_EQ(Ask().message, "0/1 nodes are available: 1 cannot allocate all claims.");
  simulation_.claims.clear();
  EXPECT_FALSE(Ask().fits);
  EXPECT_NE(Ask().message.find("could not find ResourceClaim"), std::string::npos);
}

TEST_F(SimulationTest, WithTheGateOffFeaturesAreNotRequired) {
  EXPECT_TRUE(Ask(FeatureGates().With(Gate::kNodeDeclaredFeatures, false)).fits);
}

}  // namespace
}  // namespace drakkar::scheduler
