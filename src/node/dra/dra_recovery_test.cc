// Drivers that do not return, and agents that restart.
#include <gtest/gtest.h>

#include "base/text/text.h"
#include "node/dra/dra_manager.h"
#include "node/node_agent.h"
#include "node/pods/pod_manager.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As `drakkar node forget-driver` does.
void Forget(NodeHarness& node, const std::string& driver) {
  api::Draft changed(node.api.Get("Node", "node-1")->tree());
  changed["metadata"]["annotations"].Entry("node.drakkar.io/forgotten-drivers") = driver;
  ASSERT_TRUE(node.api.Update("Node", "node-1", "", changed.Freeze()).ok());
  node.Run();
}

TEST(DraRecovery, AForgottenDriverNoLongerBlocksDeletion) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.driver.Stop();
  node.DeletePod("p");
  node.Advance(seconds(120));
  EXPECT_NE(node.Phase("p"), "(gone)");
  EXPECT_FALSE(node.Events("FailedUnprepareDynamicResources").empty());
  Forget(node, "gpu.example.com");
  EXPECT_EQ(node.Phase("p"), "(gone)");
  EXPECT_EQ(node.Events("DriverForgotten").size(), 2u) << "about the node and about the pod";
}

TEST(DraRecovery, AForgottenDriverThatReturnsIsUsedAgain) {
  GpuNode node;
  node.driver.Stop();
  Forget(node, "gpu.example.com");
  node.driver.Start();
  EXPECT_FALSE((*node.api.Get("Node", "node-1"))["metadata"]["annotations"]
                   .Entry("node.drakkar.io/forgotten-drivers")
                   .has_value());
  node.CreatePodWithClaim();
  node.DeletePod("p");
  node.Advance(seconds(1));
  EXPECT_THAT(node.history, ElementsAre("prepare c", "unprepare c"));
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(DraRecovery, ADriverCanBeForgottenWhileTheAgentIsDown) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.driver.Stop();
  node.KillAgent();
  Forget(node, "gpu.example.com");
  node.DeletePod("p");
  node.StartAgent();
  node.Advance(seconds(3));
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(DraRecovery, AForgottenDriverWithALeftoverSocketNoLongerBlocksDeletion) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.driver.Kill();
  ASSERT_TRUE(node.agent->plugins().GetPlugin("gpu.example.com").ok()) << "still registered";
  node.DeletePod("p");
  node.Advance(seconds(120));
  EXPECT_NE(node.Phase("p"), "(gone)");
  Forget(node, "gpu.example.com");
  EXPECT_EQ(node.Phase("p"), "(gone)");
  EXPECT_EQ(node.Events("DriverForgotten").size(), 2u) << "about the node and about the pod";
}

TEST(DraRecovery, AForgottenDriverIsUsedWhileItIsConnected) {
  GpuNode node;
  node.CreatePodWithClaim();
  Forget(node, "gpu.example.com");
  EXPECT_THAT(node.Events("DriverForgotten").at(0), HasSubstr("still connected and in use"));
  node.driver.plugin.unprepare_error = Internal("stuck");
  node.DeletePod("p");
  node.Advance(seconds(120));
  EXPECT_FALSE(node.driver.plugin.unprepare_calls.empty());
  EXPECT_NE(node.Phase("p"), "(gone)");
  node.driver.Kill();
  node.Advance(seconds(1));
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(DraRecovery, APodDeletedLaterGetsTheEventAndARestartDoesNotRepeatTheNodeEvent) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.driver.Stop();
  Forget(node, "gpu.example.com");
  ASSERT_EQ(node.Events("DriverForgotten").size(), 1u)
      << "about the node: the pod is not concerned yet";
  node.KillAgent();
  node.StartAgent();
  node.Advance(seconds(5));
  EXPECT_EQ(node.Events("DriverForgotten").size(), 1u);
  node.DeletePod("p");
  node.Advance(seconds(1));
  EXPECT_EQ(node.Phase("p"), "(gone)");
  EXPECT_THAT(node.Events("DriverForgotten"),
              ElementsAre(HasSubstr("claims will be unprepared without it"),
                          HasSubstr("claims were unprepared without it")));
}

std::string ForgottenOnTheNode(NodeHarness& node) {
  return std::string((*node.api.Get("Node", "node-1"))["metadata"]["annotations"]
                         .Entry("node.drakkar.io/forgotten-drivers")
                         .str("(none)"));
}

TEST(DraRecovery, ADriverThatReturnsBeforeTheNodeIsReadIsRemovedFromTheList) {
  GpuNode node;
  node.driver.Stop();
  Forget(node, "gpu.example.com");
  node.KillAgent();
  node.api_fault = [](const std::string& what) -> std::optional<Error> {
    if (what == "list nodes") return Unavailable("not now");
    return std::nullopt;
  };
  node.StartAgent();
  node.driver.Start();
  node.Advance(seconds(5));
  EXPECT_EQ(ForgottenOnTheNode(node), "gpu.example.com");
  node.api_fault = nullptr;
  node.Advance(seconds(60));
  EXPECT_EQ(ForgottenOnTheNode(node), "(none)");
}

TEST(DraRecovery, RemovingDriversFromTheListIsRetriedAndUndoesNoConcurrentWrite) {
  GpuNode node;
  FakeDriver nic(node, "nic.example.com", "nic.sock");
  node.driver.Stop();
  Forget(node, "gpu.example.com,nic.example.com");
  int failures = 3;
  node.api_fault = [&](const std::string& what) -> std::optional<Error> {
    if (what == "patch nodes" && failures-- > 0) return Unavailable("not now");
    return std::nullopt;
  };
  node.driver.Start();
  nic.Start();
  node.Advance(seconds(2));
  EXPECT_EQ(ForgottenOnTheNode(node), "gpu.example.com,nic.example.com");
  // Somebody else adds a driver right before the next attempt.
  bool added = false;
  node.api_fault = [&](const std::string& what) -> std::optional<Error> {
    if (what == "patch nodes" && !added) {
      added = true;
      api::Draft changed(node.api.Get("Node", "node-1")->tree());
      changed["metadata"]["annotations"].Entry("node.drakkar.io/forgotten-drivers") =
          "fpga.example.com,gpu.example.com,nic.example.com";
      EXPECT_TRUE(node.api.Update("Node", "node-1", "", changed.Freeze()).ok());
    }
    return std::nullopt;
  };
  node.Advance(seconds(60));
  EXPECT_TRUE(added);
  EXPECT_EQ(ForgottenOnTheNode(node), "fpga.example.com");
}

// The agent is killed before the checkpoint is written: only the intent is on disk.
TEST(DraRecovery, ARunningPodWhoseDevicesAreUnknownIsPreparedAgain) {
  GpuNode node;
  node.CreatePodWithClaim();
  ASSERT_EQ(node.Phase("p"), "Running");
  node.KillAgent();
  node.StartAgent();
  node.Advance(seconds(2));
  EXPECT_THAT(node.history, ElementsAre("prepare c", "prepare c"));
  EXPECT_EQ(node.agent->dra()
                .cache()
                .claims()
                .at("default/c")
                .drivers.at("gpu.example.com")
                .devices.size(),
            1u);
  EXPECT_EQ((*node.Pod("p"))["status"]["containerStatuses"]
                .at(0)["allocatedResourcesStatus"]
                .at(0)["name"]
                .str(),
            "claim:c");
  EXPECT_EQ(node.Containers("p", "a").size(), 1u) << "it runs on";
  node.KillAgent();
  node.StartAgent();
  node.Advance(seconds(2));
  EXPECT_EQ(node.history.size(), 2u) << "what is known is not asked for again";
  EXPECT_TRUE(node.Events("FailedPrepareDynamicResources").empty());
}

TEST(DraRecovery, ARunningPodWhoseDevicesAreUnknownKeepsRunningUntilItsDriverRegisters) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.KillAgent();
  node.driver.Stop();
  node.StartAgent();
  node.Advance(seconds(200));
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("DRA driver gpu.example.com is not registered"));
  node.driver.Start();
  EXPECT_THAT(node.history, ElementsAre("prepare c", "prepare c")) << "not after a minute";
  node.Advance(seconds(200));
  EXPECT_EQ(node.history.size(), 2u);
  ASSERT_EQ(node.Containers("p", "a").size(), 1u);
  EXPECT_EQ(node.Containers("p", "a")[0]->status.state, ContainerState::kRunning);
}

TEST(DraRecovery, DeletionWaitsForARecoveryInFlight) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.KillAgent();
  node.driver.plugin.hold_calls = true;
  node.StartAgent();
  node.Advance(seconds(2));
  ASSERT_EQ(node.driver.plugin.held_calls(), 1u);
  node.DeletePod("p");
  node.Advance(seconds(1));
  EXPECT_TRUE(node.driver.plugin.unprepare_calls.empty());
  EXPECT_EQ(node.Containers("p", "a").at(0)->status.state, ContainerState::kExited)
      << "that does not wait";
  node.driver.plugin.hold_calls = false;
  node.driver.plugin.ReleaseCalls();
  node.Advance(seconds(1));
  EXPECT_EQ(node.Phase("p"), "(gone)");
  EXPECT_THAT(node.history, ElementsAre("prepare c", "prepare c", "unprepare c"));
}

TEST(DraRecovery, AfterAnAgentRestartAContainerRestartsWithoutDriverClaimOrGate) {
  GpuNode node;
  node.RunFor(seconds(100), 1);
  node.CreateClaim("c", {"gpu.example.com/dev-0", "ghost.example.com/dev-0!"});
  node.CreatePod(
      "p",
      R"("containers":[{"name":"a","image":"busybox:1","resources":{"claims":[{"name":"c"}]}}])",
      {"c"});
  node.Advance(seconds(1));
  node.KillAgent();
  node.driver.Stop();
  node.gates = node.gates.With(Gate::kDRAOptionalNodePreparation, false)
                   .With(Gate::kNodeDeclaredFeatures, false);
  node.api_fault = [](const std::string& what) -> std::optional<Error> {
    if (what == "get resourceclaims") return Unavailable("no claims today");
    return std::nullopt;
  };
  node.StartAgent();
  node.Advance(seconds(150));
  EXPECT_TRUE(node.Events("FailedPrepareDynamicResources").empty());
  const auto containers = node.Containers("p", "a");
  ASSERT_EQ(containers.size(), 2u);
  EXPECT_EQ(containers[1]->status.state, ContainerState::kRunning);
  EXPECT_NE(EnvironmentOf(*containers[1], "DEVICE_OF_c"), "(none)");
  EXPECT_THAT(node.history, ElementsAre("prepare c"));
}

}  // namespace
}  // namespace drakkar::node
