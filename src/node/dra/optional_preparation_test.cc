#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"
#include "node/checkpoint/claim_checkpoint.h"
#include "node/dra/dra_manager.h"
#include "node/node_agent.h"
#include "node/pods/pod_manager.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(OptionalPreparation, ADriverThatSkipsNodeOperationsIsNeitherCalledNorNeeded) {
  NodeHarness node;
  node.StartAgent();
  node.RunFor(seconds(5));
  node.CreateClaim("c", {"ghost.example.com/dev-0"}, "*");
  node.CreatePod("p", kUsesClaim, {"c"});
  EXPECT_EQ(node.Phase("p"), "Running");
  node.Advance(seconds(6));
  EXPECT_EQ(node.Phase("p"), "Succeeded");
  EXPECT_THAT(
      node.metrics.Text(),
      HasSubstr(R"(kubelet_dra_node_prepare_skips_total{driver_name="ghost.example.com"} 1)"));
  EXPECT_THAT(node.metrics.Text(),
              HasSubstr(R"(dra_node_unprepare_skips_total{driver_name="ghost.example.com"} 1)"));
}

TEST(OptionalPreparation, WithTheGateOffARunningPodThatSkipsIsStoppedAndDeletedAtOnce) {
  NodeHarness node;
  node.StartAgent();
  node.CreateClaim("c", {"ghost.example.com/dev-0"}, "*");
  node.CreatePod("p", kUsesClaim, {"c"});
  ASSERT_EQ(node.Phase("p"), "Running");
  node.KillAgent();
  node.gates = node.gates.With(Gate::kDRAOptionalNodePreparation, false);
  node.StartAgent();
  node.Advance(seconds(31));
  EXPECT_EQ(node.Phase("p"), "Failed");
  EXPECT_EQ((*node.Pod("p"))["status"]["reason"].str(), "PodFeatureUnsupported");
  node.DeletePod("p");
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(OptionalPreparation, WithTheGateOffAdmissionRejectsAPodWhoseClaimSkips) {
  NodeHarness node;
  node.CreateClaim("c", {"ghost.example.com/dev-0"}, "NodeUnprepareResources");
  node.gates = node.gates.With(Gate::kDRAOptionalNodePreparation, false);
  node.StartAgent();
  node.CreatePod("p", kUsesClaim, {"c"});
  EXPECT_EQ(node.Phase("p"), "Failed");
  EXPECT_EQ((*node.Pod("p"))["status"]["reason"].str(), "PodFeatureUnsupported");
  EXPECT_EQ((*node.Pod("p"))["status"]["message"].str(),
            "Pod was rejected: Pod requires node features that are not available: "
            "DraOptionalNodePreparation");
  EXPECT_TRUE(node.machine.sandboxes.empty());
  EXPECT_THAT(node.metrics.Text(),
              HasSubstr(R"(kubelet_admission_rejections_total{reason="PodFeatureUnsupported"} 1)"));
}

TEST(OptionalPreparation, WithTheGateOffPreparingAClaimThatSkipsFails) {
  NodeHarness node;
  node.CreateClaim("c", {"ghost.example.com/dev-0"}, "*");
  node.gates = node.gates.With(Gate::kDRAOptionalNodePreparation, false)
                   .With(Gate::kNodeDeclaredFeatures, false);
  node.StartAgent();
  node.CreatePod("p", kUsesClaim, {"c"});
  EXPECT_EQ(node.Phase("p"), "Pending");
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("DRAOptionalNodePreparationDisabled"));
}

TEST(OptionalPreparation, OneDriverSkipsAndAnotherDoesNot) {
  GpuNode node;
  node.CreateClaim("c", {"ghost.example.com/dev-0!", "gpu.example.com/dev-0"});
  node.CreatePod("p", kUsesClaim, {"c"});
  EXPECT_EQ(node.Phase("p"), "Running");
  node.DeletePod("p");
  node.Advance(seconds(1));
  EXPECT_EQ(node.Phase("p"), "(gone)");
  EXPECT_THAT(node.history, ElementsAre("prepare c", "unprepare c"));
}

TEST(OptionalPreparation, ADriverIsCalledIfAnyOfItsDevicesDoesNotSkip) {
  NodeHarness node;
  node.StartAgent();
  node.CreateClaim("c", {"gpu.example.com/dev-0!", "gpu.example.com/dev-1"});
  node.CreatePod("p", kUsesClaim, {"c"});
  EXPECT_EQ(node.Phase("p"), "Pending");
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("DRA driver gpu.example.com is not registered"));
  FakeDriver driver(node, "gpu.example.com", "gpu.sock");
  driver.Start();
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_THAT(node.history, ElementsAre("prepare c"));
}

TEST(OptionalPreparation, FalseAndAbsentBothCallTheDriver) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/dev-0"});
  api::Draft changed(node.api.Get("ResourceClaim", "default/c")->tree());
  changed["status"]["allocation"]["devices"]["results"].MutableElements()[0]["skipNodeOperations"] =
      api::Draft(false);
  ASSERT_TRUE(node.api.Update("ResourceClaim", "default/c", "status", changed.Freeze()).ok());
  node.CreateClaim("d", {"gpu.example.com/dev-1"});
  node.CreatePod("p", kUsesClaim, {"c", "d"});
  EXPECT_THAT(node.history, ElementsAre("prepare c", "prepare d"));
  node.DeletePod("p");
  node.Advance(seconds(1));
  EXPECT_THAT(node.history, ElementsAre("prepare c", "prepare d", "unprepare c", "unprepare d"));
}

rpc::HealthReport Health(const std::string& device, rpc::DeviceHealthState state) {
  return {{.pool_name = "pool", .device_name = device, .health = state}};
}

// "claim:c/... ID health" of the container's devices.
std::string HealthRows(NodeHarness& node) {
  std::string text;
  for (api::Value row : (*node.Pod("p"))["status"]["containerStatuses"]
                            .at(0)["allocatedResourcesStatus"]
                            .elements()) {
    for (api::Value device : row["resources"].elements()) {
      text += StrCat(row["name"].str(), " ", device["resourceID"].str(), " ",
                     device["health"].str(), "; ");
    }
  }
  return text;
}

TEST(OptionalPreparation, ARegisteredDriverIsNotCalledForDevicesThatSkip) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/dev-0"}, "*");
  node.CreatePod("p", kUsesClaim, {"c"});
  ASSERT_EQ(node.Phase("p"), "Running");
  node.DeletePod("p");
  node.Advance(seconds(1));
  EXPECT_EQ(node.Phase("p"), "(gone)");
  EXPECT_TRUE(node.history.empty());
}

TEST(OptionalPreparation, DevicesThatSkipHaveHealthRowsAndEventsIfTheirDriverReportsHealth) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/dev-0"}, "*");
  node.CreatePod("p", kUsesClaim, {"c"});
  EXPECT_EQ(HealthRows(node), "") << "nobody speaks for it";
  node.driver.plugin.PushHealth(Health("dev-0", rpc::DeviceHealthState::kHealthy));
  node.Run();
  EXPECT_EQ(HealthRows(node), "claim:c gpu.example.com/pool/dev-0 Healthy; ");
  node.driver.plugin.PushHealth(Health("dev-0", rpc::DeviceHealthState::kUnhealthy));
  node.Run();
  EXPECT_EQ(HealthRows(node), "claim:c gpu.example.com/pool/dev-0 Unhealthy; ");
  EXPECT_EQ(node.Events("DeviceUnhealthy").size(), 1u);

  node.KillAgent();
  node.StartAgent();
  EXPECT_EQ(HealthRows(node), "claim:c gpu.example.com/pool/dev-0 Unhealthy; ");
  node.driver.plugin.PushHealth(Health("dev-0", rpc::DeviceHealthState::kHealthy));
  node.Run();
  EXPECT_EQ(HealthRows(node), "claim:c gpu.example.com/pool/dev-0 Healthy; ") << "after a restart";
  node.driver.Stop();
  EXPECT_EQ(HealthRows(node), "claim:c gpu.example.com/pool/dev-0 Unknown; ");
}

TEST(OptionalPreparation, ADeviceThatSkipsIsListedBesideAPreparedOneOfTheSameDriver) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/dev-0!", "gpu.example.com/dev-1"});
  node.CreatePod("p", kUsesClaim, {"c"});
  node.driver.plugin.PushHealth(Health("dev-0", rpc::DeviceHealthState::kUnhealthy));
  node.Run();
  EXPECT_THAT(HealthRows(node), HasSubstr("claim:c gpu.example.com/pool/dev-0 Unhealthy; "));
  EXPECT_THAT(node.history, ElementsAre("prepare c"));
}

TEST(OptionalPreparation, ASharedClaimIsSkippedOnceForAllItsPods) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/dev-0", "gpu.example.com/dev-1"}, "*");
  node.CreatePod("p", kUsesClaim, {"c"});
  node.CreatePod("q", kUsesClaim, {"c"});
  EXPECT_EQ(node.Phase("q"), "Running");
  node.driver.plugin.PushHealth(Health("dev-1", rpc::DeviceHealthState::kUnhealthy));
  node.Run();
  EXPECT_EQ(HealthRows(node), "claim:c gpu.example.com/pool/dev-1 Unhealthy; ");
  EXPECT_EQ(node.Events("DeviceUnhealthy").size(), 2u) << "one for each pod";
  node.DeletePod("p");
  node.Advance(seconds(1));
  EXPECT_THAT(node.metrics.Text(), Not(HasSubstr("dra_node_unprepare_skips_total{")));
  node.DeletePod("q");
  node.Advance(seconds(1));
  EXPECT_EQ(node.Phase("q"), "(gone)");
  EXPECT_THAT(node.metrics.Text(),
              HasSubstr(R"(dra_node_prepare_skips_total{driver_name="gpu.example.com"} 1)"));
  EXPECT_THAT(node.metrics.Text(),
              HasSubstr(R"(dra_node_unprepare_skips_total{driver_name="gpu.example.com"} 1)"));
  EXPECT_TRUE(node.history.empty());
}

TEST(OptionalPreparation, TheListsOfAllDevicesOfADriverAreAggregated) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/dev-0!", "gpu.example.com/dev-1!NodeUnprepareResources"});
  node.CreatePod("p", kUsesClaim, {"c"});
  ASSERT_EQ(node.Phase("p"), "Running");
  node.DeletePod("p");
  node.Advance(seconds(1));
  EXPECT_EQ(node.Phase("p"), "(gone)");
  EXPECT_THAT(node.history, ElementsAre("prepare c")) << "what every device skips";
}

TEST(OptionalPreparation, SkippingUnprepareAloneStillPrepares) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/dev-0"}, "NodeUnprepareResources");
  node.CreatePod("p", kUsesClaim, {"c"});
  node.driver.Stop();
  node.DeletePod("p");
  node.Advance(seconds(1));
  EXPECT_EQ(node.Phase("p"), "(gone)") << "the driver is not needed for that";
  EXPECT_THAT(node.history, ElementsAre("prepare c"));
}

TEST(OptionalPreparation, ASkipIsCountedOncePerClaimAndDriverDespiteRetries) {
  NodeHarness node;
  node.StartAgent();
  node.CreateClaim("c", {"ghost.example.com/dev-0!", "gpu.example.com/dev-0"});
  node.CreatePod("p", kUsesClaim, {"c"});
  node.Advance(seconds(100));
  EXPECT_GE(node.Events("FailedPrepareDynamicResources").size(), 1u);
  FakeDriver driver(node, "gpu.example.com", "gpu.sock");
  driver.plugin.prepare_error = Internal("not yet");
  driver.Start();
  node.Advance(seconds(30));
  driver.plugin.prepare_error.reset();
  node.Advance(seconds(61));
  ASSERT_EQ(node.Phase("p"), "Running");
  node.CreatePod("q", kUsesClaim, {"c"});
  EXPECT_THAT(node.metrics.Text(),
              HasSubstr("\ndra_node_prepare_skips_total{driver_name=\"ghost.example.com\"} 1"));
  driver.plugin.unprepare_error = Internal("not yet");
  node.DeletePod("p");
  node.DeletePod("q");
  node.Advance(seconds(20));
  driver.plugin.unprepare_error.reset();
  node.Advance(seconds(61));
  EXPECT_EQ(node.Phase("q"), "(gone)");
  EXPECT_THAT(node.metrics.Text(),
              HasSubstr("\ndra_node_unprepare_skips_total{driver_name=\"ghost.example.com\"} 1"));
}

TEST(OptionalPreparation, TheDecisionIsInTheCheckpointAndSurvivesARestart) {
  NodeHarness node;
  node.StartAgent();
  node.CreateClaim("c", {"ghost.example.com/dev-0!"});
  node.CreatePod("p", kUsesClaim, {"c"});
  node.Advance(seconds(1));
  EXPECT_THAT(*node.files.ReadFile("/var/lib/kubelet/dra_manager_state"),
              HasSubstr(R"(\"skipNodeOperations\":[\"*\"])"));
  node.KillAgent();
  node.StartAgent();
  node.DeletePod("p");
  node.Advance(seconds(1));
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

// The allocation counts, whatever the slice says now.
TEST(OptionalPreparation, ALaterSliceChangeHasNoEffectInEitherDirection) {
  GpuNode node;
  auto publish = [&](const char* name, bool skips) {
    const auto before = node.api.Get("ResourceSlice", name);
    if (before == nullptr) {
      node.api.Create(StrCat(
          R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":")", name,
          R"("},"spec":{"driver":")", name, R"(","nodeName":"node-1","skipNodeOperations":)",
          skips ? "true" : "false",
          R"(,"pool":{"name":"node-1","generation":1,"resourceSliceCount":1},"devices":[{"name":"dev-0"}]}})"));
      return;
    }
    api::Draft changed(before->tree());
    changed["spec"]["skipNodeOperations"] = api::Draft(skips);
    ASSERT_TRUE(node.api.Update("ResourceSlice", name, "", changed.Freeze()).ok());
  };
  publish("ghost.example.com", true);
  publish("gpu.example.com", false);
  node.CreateClaim("c", {"ghost.example.com/dev-0!"});
  node.CreatePod("p", kUsesClaim, {"c"});
  node.CreateClaim("d", {"gpu.example.com/dev-0"});
  node.CreatePod(
      "q",
      R"("containers":[{"name":"a","image":"busybox:1","resources":{"claims":[{"name":"d"}]}}])",
      {"d"});
  publish("ghost.example.com", false);
  publish("gpu.example.com", true);
  node.driver.Stop();
  node.DeletePod("p");
  node.DeletePod("q");
  node.Advance(seconds(5));
  EXPECT_EQ(node.Phase("p"), "(gone)");
  EXPECT_NE(node.Phase("q"), "(gone)") << "allocated to be unprepared: its driver is needed";
  node.driver.Start();
  EXPECT_EQ(node.Phase("q"), "(gone)");
}

TEST(OptionalPreparation, APodThatSkipsTerminatesWhileTheApiServerIsDown) {
  NodeHarness node;
  node.StartAgent();
  node.CreateClaim("c", {"ghost.example.com/dev-0!"});
  node.machine.program_of = [](const ContainerConfig&) {
    return HollowProgram{.stops_within = seconds(2)};
  };
  node.CreatePod("p", kUsesClaim, {"c"});
  ASSERT_EQ(node.Phase("p"), "Running");
  node.DeletePod("p");
  node.client->SetDown(true);
  node.Advance(seconds(5));
  for (const auto& [id, container] : node.machine.containers) {
    EXPECT_NE(container.status.state, ContainerState::kRunning);
  }
  EXPECT_EQ(node.agent->dra().cache().claims().size(), 0u);
  EXPECT_THAT(node.metrics.Text(),
              HasSubstr("dra_node_unprepare_skips_total{driver_name=\"ghost.example.com\"} 1"));
  node.client->SetDown(false);
  node.Advance(seconds(61));
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(OptionalPreparation, WithTheGateOffAMixedClaimIsRejectedToo) {
  NodeHarness node;
  FakeDriver driver(node, "gpu.example.com", "gpu.sock");
  node.CreateClaim("c", {"gpu.example.com/dev-0!", "gpu.example.com/dev-1"});
  node.gates = node.gates.With(Gate::kDRAOptionalNodePreparation, false);
  node.StartAgent();
  driver.Start();
  node.CreatePod("p", kUsesClaim, {"c"});
  EXPECT_EQ(node.Phase("p"), "Failed");
  EXPECT_EQ((*node.Pod("p"))["status"]["reason"].str(), "PodFeatureUnsupported");
  EXPECT_TRUE(node.history.empty());
}

TEST(OptionalPreparation, WithBothGatesOffAMixedClaimFailsToPrepare) {
  NodeHarness node;
  FakeDriver driver(node, "gpu.example.com", "gpu.sock");
  node.CreateClaim("c", {"gpu.example.com/dev-0!", "gpu.example.com/dev-1"});
  node.gates = node.gates.With(Gate::kDRAOptionalNodePreparation, false)
                   .With(Gate::kNodeDeclaredFeatures, false);
  node.StartAgent();
  driver.Start();
  node.CreatePod("p", kUsesClaim, {"c"});
  EXPECT_EQ(node.Phase("p"), "Pending");
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("DRAOptionalNodePreparationDisabled"));
  EXPECT_TRUE(node.history.empty());
  node.DeletePod("p");
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(OptionalPreparation, WithTheGateOffAMixedClaimOfARunningPodStopsItAfterARestart) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/dev-0!", "gpu.example.com/dev-1"});
  node.CreatePod("p", kUsesClaim, {"c"});
  ASSERT_EQ(node.Phase("p"), "Running");
  node.KillAgent();
  node.gates = node.gates.With(Gate::kDRAOptionalNodePreparation, false);
  node.StartAgent();
  node.Advance(seconds(31));
  EXPECT_EQ(node.Phase("p"), "Failed");
  EXPECT_EQ(node.history.back(), "unprepare c") << "the driver does need to take this one back";
}

// The gate is checked when a pod starts. A running pod whose gate was turned off while admission
// does not check (NodeDeclaredFeatures off) keeps running and terminates without its driver.
TEST(OptionalPreparation, WithTheGatesOffUnprepareOfARunningPodStillSkips) {
  NodeHarness node;
  node.StartAgent();
  node.CreateClaim("c", {"ghost.example.com/dev-0!"});
  node.CreatePod("p", kUsesClaim, {"c"});
  node.KillAgent();
  node.gates = node.gates.With(Gate::kDRAOptionalNodePreparation, false)
                   .With(Gate::kNodeDeclaredFeatures, false);
  node.StartAgent();
  node.Advance(seconds(5));
  EXPECT_EQ(node.Phase("p"), "Running");
  node.DeletePod("p");
  node.Advance(seconds(1));
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(OptionalPreparation, WithTheGateOffAFailedClaimFetchIsRetried) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/dev-0!", "gpu.example.com/dev-1"});
  node.CreatePod("p", kUsesClaim, {"c"});
  ASSERT_EQ(node.Phase("p"), "Running");
  node.Advance(seconds(1));
  node.KillAgent();
  node.gates = node.gates.With(Gate::kDRAOptionalNodePreparation, false);
  int failures = 4;
  node.api_fault = [&](const std::string& what) -> std::optional<Error> {
    if (what == "get resourceclaims" && failures-- > 0) return Unavailable("not now");
    return std::nullopt;
  };
  node.StartAgent();
  node.Advance(seconds(5));
  EXPECT_EQ(node.Phase("p"), "Running") << "nothing is decided without an answer";
  EXPECT_EQ(node.Containers("p", "a").at(0)->status.state, ContainerState::kRunning);
  node.Advance(seconds(60));
  EXPECT_LT(failures, 0);
  EXPECT_EQ(node.Phase("p"), "Failed");
  EXPECT_EQ((*node.Pod("p"))["status"]["reason"].str(), "PodFeatureUnsupported");
}

TEST(OptionalPreparation, AMissingClaimHasNoRequirements) {
  NodeHarness node;
  node.StartAgent();
  node.api.Create(StrCat(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"node-1",)",
      kUsesClaim, R"(,"resourceClaims":[{"name":"c","resourceClaimName":"nowhere"}]}})"));
  node.Run();
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("fetch ResourceClaim nowhere"));
}

TEST(OptionalPreparation, ANodeOfThePreviousReleaseIgnoresTheFieldAndWaitsForADriver) {
  NodeHarness node;
  node.StartAgent();
  node.CreateClaim("c", {"ghost.example.com/dev-0!"});
  node.CreatePod("p", kUsesClaim, {"c"});
  ASSERT_EQ(node.Phase("p"), "Running");
  node.KillAgent();
  node.gates = *FeatureGates::Create({.emulated = {1, 36}});
  ASSERT_FALSE(node.gates.Known(Gate::kDRAOptionalNodePreparation));
  node.StartAgent();
  ASSERT_TRUE(node.started.ok()) << "a checkpoint with an unknown field is read";
  EXPECT_EQ(node.Phase("p"), "Running");
  node.DeletePod("p");
  node.Advance(seconds(60));
  EXPECT_NE(node.Phase("p"), "(gone)");
  EXPECT_THAT(node.Events("FailedUnprepareDynamicResources").at(0),
              HasSubstr("DRA driver ghost.example.com is not registered"));
  FakeDriver no_op(node, "ghost.example.com", "ghost.sock");
  no_op.Start();
  EXPECT_EQ(node.Phase("p"), "(gone)");
  EXPECT_THAT(node.history, ElementsAre("unprepare c"));
}

TEST(OptionalPreparation, ACheckpointOfThePreviousReleaseSkipsNothing) {
  NodeHarness node;
  node.gates = *FeatureGates::Create({.emulated = {1, 36}});
  node.StartAgent();
  FakeDriver driver(node, "gpu.example.com", "gpu.sock");
  driver.Start();
  node.CreatePodWithClaim();
  node.Advance(seconds(1));
  node.KillAgent();
  node.gates = NodeHarness::DefaultGates();
  node.StartAgent();
  node.DeletePod("p");
  node.Advance(seconds(1));
  EXPECT_THAT(node.history, ElementsAre("prepare c", "unprepare c"));
}

// A kubelet does not list devices that skip preparation.
TEST(OptionalPreparation, AfterACheckpointOfAKubeletTheNextPodListsTheDevicesAgain) {
  NodeHarness node;
  node.StartAgent();
  node.CreateClaim("c", {"ghost.example.com/dev-0!"});
  node.CreatePod("p", kUsesClaim, {"c"});
  node.Advance(seconds(2));
  node.KillAgent();
  const std::string path = "/var/lib/kubelet/dra_manager_state";
  auto state = DecodeCheckpoint(*node.files.ReadFile(path));
  ASSERT_TRUE(state.ok() && state->has_value());
  for (CheckpointClaim& claim : **state) {
    for (auto& [name, driver] : *claim.driver_state) driver.devices.reset();
  }
  ASSERT_TRUE(node.files.WriteFile(path, EncodeCheckpoint(*state), 0600).ok());
  node.StartAgent();
  ASSERT_TRUE(node.started.ok()) << node.started.error().message;
  const auto& claims = node.agent->dra().cache().claims();
  const auto devices = [&] {
    return claims.at("default/c").drivers.at("ghost.example.com").devices;
  };
  EXPECT_TRUE(devices().empty());
  node.CreatePod("q", kUsesClaim, {"c"});
  ASSERT_EQ(node.Phase("q"), "Running");
  ASSERT_EQ(devices().size(), 1u);
  EXPECT_EQ(devices()[0].device_name, "dev-0");
}

TEST(OptionalPreparation, AReleaseWithoutItReadsACheckpointAsIfNothingWasSkipped) {
  NodeHarness node;
  node.gates = *FeatureGates::Create({.emulated = {1, 36}});
  std::vector<CheckpointClaim> state;
  for (const char* name : {"c", "d"}) {
    CheckpointClaim& claim = state.emplace_back();
    claim.uid = StrCat("uid-", name);
    claim.name = name;
    claim.namespace_name = "default";
    claim.pod_uids = {"p"};
    claim.driver_state.emplace();
    (*claim.driver_state)["never-called"].skip_node_operations = {"*"};
    (*claim.driver_state)["listed"].skip_node_operations = {"NodePrepareResources"};
    (*claim.driver_state)["listed"].devices.emplace().emplace_back().device_name = "a";
    (*claim.driver_state)["unanswered"];
  }
  ASSERT_TRUE(
      node.files.WriteFile("/var/lib/kubelet/dra_manager_state", EncodeCheckpoint(state), 0600)
          .ok());
  node.StartAgent();
  ASSERT_TRUE(node.started.ok()) << node.started.error().message;
  for (const char* key : {"default/c", "default/d"}) {
    const auto& drivers = node.agent->dra().cache().claims().at(key).drivers;
    ASSERT_EQ(drivers.size(), 3u) << key;
    for (const auto& [name, driver] : drivers) {
      EXPECT_TRUE(driver.skip_node_operations.empty()) << name;
      EXPECT_EQ(driver.answered, name != "unanswered") << name;
      EXPECT_EQ(driver.devices.size(), name == "listed" ? 1u : 0u) << name;
    }
  }
}

}  // namespace
}  // namespace drakkar::node
