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

// Ready to take the pod of the other tests, but for what a test changes.
class SimulatedClusterTest : public SimulationTest {
 protected:
  SimulatedClusterTest() { SetNode(R"(["RestartAllContainersOnContainerExits"])"); }
  // Another pod that requests all of the node's cpu.
  void AddPod(std::string spec, std::string status, std::string metadata = "") {
    simulation_.pods = {
        Parse(StrCat(R"({"metadata":{"namespace":"default","name":"o")", metadata,
                     R"(},"spec":{"containers":[{"name":"c","resources":{)",
                     R"("requests":{"cpu":"4"}}}])", spec, R"(},"status":{)", status, "}}"))};
  }
  void RequestCpu() {
    simulation_.pod = Parse(R"({"metadata":{"namespace":"default","name":"p","uid":"pu"},"spec":{
        "containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}})");
  }
};

TEST_F(SimulatedClusterTest, OnlyPodsThatUseOrKeepRoomCount) {
  RequestCpu();
  const auto fits = [&](std::string spec, std::string status,
                        std::string metadata = R"(,"uid":"ou")") {
    AddPod(std::move(spec), std::move(status), std::move(metadata));
    return Ask().fits;
  };
  constexpr char kBound[] = R"(,"nodeName":"template")";
  constexpr char kNominated[] = R"("nominatedNodeName":"template")";
  EXPECT_FALSE(fits(kBound, ""));
  EXPECT_FALSE(fits("", kNominated));
  EXPECT_TRUE(fits("", "")) << "it is nowhere yet";
  EXPECT_TRUE(fits(R"(,"nodeName":"elsewhere")", ""));
  for (const char* phase : {"Succeeded", "Failed"}) {
    EXPECT_TRUE(fits(kBound, StrCat(R"("phase":")", phase, "\""))) << phase;
  }
  EXPECT_TRUE(fits("", kNominated, R"(,"uid":"ou","deletionTimestamp":"2026-01-01T00:00:00Z")"));
  EXPECT_TRUE(fits(kBound, "", R"(,"uid":"pu")")) << "it is the pod itself";
}

TEST_F(SimulatedClusterTest, EveryDeviceOfEveryClaimIsListed) {
  simulation_.slices = {Parse(R"({"metadata":{"name":"s"},"spec":{"driver":"d.example.com",
      "nodeName":"template","pool":{"name":"pool","generation":1,"resourceSliceCount":1},
      "devices":[{"name":"dev-0"},{"name":"dev-1"},{"name":"dev-2"}]}})")};
  simulation_.claims.push_back(Parse(R"({"metadata":{"namespace":"default","name":"two","uid":"t",
      "resourceVersion":"1"},"spec":{"devices":{"requests":[{"name":"both","exactly":{
      "deviceClassName":"gpu","allocationMode":"ExactCount","count":2}}]}}})"));
  simulation_.pod = Parse(R"({"metadata":{"namespace":"default","name":"p","uid":"pu"},"spec":{
      "containers":[{"name":"c"}],"resourceClaims":[{"name":"r","resourceClaimName":"c"},
      {"name":"s","resourceClaimName":"two"}]}})");
  const SimulationAnswer answer = Ask();
  ASSERT_TRUE(answer.fits) << answer.message;
  std::vector<std::string> devices;
  for (const SimulatedDevice& device : answer.devices) {
    devices.push_back(StrCat(device.claim, "/", device.request, " ", device.driver, "/",
                             device.pool, "/", device.device));
  }
  EXPECT_EQ(devices, (std::vector<std::string>{"c/req d.example.com/pool/dev-0",
                                               "two/both d.example.com/pool/dev-1",
                                               "two/both d.example.com/pool/dev-2"}));
}

TEST_F(SimulatedClusterTest, TaintRulesCountIfTheSchedulerUsesThem) {
  simulation_.taint_rules = {Parse(R"({"metadata":{"name":"t"},"spec":{"deviceSelector":{
      "driver":"d.example.com"},"taint":{"key":"k","effect":"NoSchedule"}}})")};
  const FeatureGates on =
      FeatureGates().With(Gate::kDRADeviceTaints, true).With(Gate::kDRADeviceTaintRules, true);
  EXPECT_FALSE(Ask(on).fits);
  EXPECT_TRUE(Ask(on.With(Gate::kDRADeviceTaintRules, false)).fits);
}

TEST_F(SimulatedClusterTest, AGatedPodFitsNowhere) {
  simulation_.pod = Parse(R"({"metadata":{"namespace":"default","name":"p","uid":"pu"},"spec":{
      "containers":[{"name":"c"}],"schedulingGates":[{"name":"x/y"}]}})");
  const SimulationAnswer answer = Ask();
  EXPECT_FALSE(answer.fits);
  EXPECT_EQ(answer.message, "waiting for scheduling gates: [x/y]");
  EXPECT_EQ(answer.node, "");
}

TEST_F(SimulatedClusterTest, AnErrorIsNotARefusal) {
  simulation_.classes = {Parse(R"({"metadata":{"name":"gpu"},"spec":{"selectors":[{"cel":{
      "expression":"device.attributes[\"d.example.com\"].absent == 1"}}]}})")};
  const auto answer = Simulate(simulation_, {.loop = loop_,
                                             .random = loop_.random(),
                                             .compiler = expressions_,
                                             .gates = FeatureGates(),
                                             .declared_features = nullptr});
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message.find("no such key: absent"), std::string::npos)
      << answer.error().message;
}

}  // namespace
}  // namespace drakkar::scheduler
