#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "api/json/reader.h"
#include "base/exec/wakefulness.h"
#include "base/text/text.h"
#include "node/dra/dra_manager.h"
#include "node/node_agent.h"
#include "node/pods/pod_manager.h"
#include "node/testing/logged_lines.h"
#include "node/testing/node_harness.h"
#include "rpc/podresources/podresources.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DraManager, WaitsForAMissingDriverAndStartsAtOnceWhenItRegisters) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePodWithClaim();
  node.Advance(seconds(200));
  EXPECT_EQ(node.Phase("p"), "Pending");
  EXPECT_EQ(node.agent->dra().cache().claims().size(), 0u) << "a pod that failed leaves no trace";
  const auto events = node.Events("FailedPrepareDynamicResources");
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0],
            "Failed to prepare dynamic resources: prepare dynamic resources: DRA driver "
            "gpu.example.com is not registered");
  FakeDriver driver(node, "gpu.example.com", "gpu-reg.sock");
  driver.Start();
  EXPECT_EQ(node.Phase("p"), "Running");
}

TEST(DraManager, APodWhoseDriverNeverRegisteredIsDeletedAtOnce) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePodWithClaim();
  node.DeletePod("p");
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(DraManager, RetriesAFailedPrepare) {
  GpuNode node;
  auto works = node.driver.plugin.prepare_claim;
  node.driver.plugin.prepare_claim = [](const rpc::ClaimReference&) {
    return rpc::PrepareResult{.error = "no power"};
  };
  node.CreatePodWithClaim();
  EXPECT_EQ(node.Phase("p"), "Pending");
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0),
              HasSubstr("NodePrepareResources failed for ResourceClaim c: no power"));
  node.driver.plugin.prepare_claim = works;
  node.Advance(seconds(3));
  EXPECT_EQ(node.Phase("p"), "Running");
}

TEST(DraManager, ASharedClaimIsUnpreparedWithItsLastPod) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/dev-0"});
  node.CreatePod("p1", kUsesClaim, {"c"});
  node.CreatePod("p2", kUsesClaim, {"c"});
  EXPECT_EQ(node.Phase("p2"), "Running");
  EXPECT_THAT(node.history, ElementsAre("prepare c"));
  node.DeletePod("p1");
  node.Advance(seconds(1));
  EXPECT_EQ(node.Phase("p1"), "(gone)");
  EXPECT_THAT(node.history, ElementsAre("prepare c"));
  node.DeletePod("p2");
  node.Advance(seconds(1));
  EXPECT_EQ(node.Phase("p2"), "(gone)");
  EXPECT_THAT(node.history, ElementsAre("prepare c", "unprepare c"));
}

TEST(DraManager, AContainerSeesOnlyTheRequestsItNames) {
  GpuNode node;
  node.driver.plugin.prepare_claim = [&](const rpc::ClaimReference&) {
    rpc::PrepareResult result;
    for (const char* request : {"r", "other"}) {
      EXPECT_TRUE(
          node.files
              .WriteFile(StrCat("/var/run/cdi/", request, ".json"),
                         StrCat(R"({"cdiVersion":"0.5.0","kind":"x.com/)", request,
                                R"(","devices":[{"name":"d","containerEdits":{"env":["GOT_)",
                                request, R"(=yes"]}}]})"),
                         0644)
              .ok());
      result.devices.push_back({.request_names = {request},
                                .pool_name = "pool",
                                .device_name = request,
                                .cdi_device_ids = {StrCat("x.com/", request, "=d")}});
    }
    return result;
  };
  node.CreateClaim("c", {"gpu.example.com/dev-0"});
  node.CreatePod("p", R"("containers":[
      {"name":"a","image":"busybox:1","resources":{"claims":[{"name":"c","request":"r"}]}},
      {"name":"b","image":"busybox:1"}])",
                 {"c"});
  ASSERT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(EnvironmentOf(*node.Containers("p", "a")[0], "GOT_r"), "yes");
  EXPECT_EQ(EnvironmentOf(*node.Containers("p", "a")[0], "GOT_other"), "(none)");
  EXPECT_EQ(EnvironmentOf(*node.Containers("p", "b")[0], "GOT_r"), "(none)");
}

TEST(DraManager, RefusesToStartOnACorruptCheckpoint) {
  NodeHarness node;
  ASSERT_TRUE(
      node.files
          .WriteFile("/var/lib/kubelet/dra_manager_state", "{\"Data\":\"x\",\"Checksum\":1}", 0600)
          .ok());
  node.StartAgent();
  ASSERT_FALSE(node.started.ok());
  EXPECT_THAT(node.started.error().message, HasSubstr("checkpoint is corrupted"));
}

TEST(DraManager, AnAgentStoppedDuringADriverCallContinuesAfterARestart) {
  GpuNode node;
  node.driver.plugin.hold_calls = true;
  node.CreatePodWithClaim();
  ASSERT_EQ(node.driver.plugin.held_calls(), 1u);
  EXPECT_THAT(*node.files.ReadFile("/var/lib/kubelet/dra_manager_state.intents"),
              HasSubstr("gpu.example.com"))
      << "the intent is on disk before the call";
  node.KillAgent();
  node.transport.BreakConnections("/var/lib/kubelet/plugins_registry/gpu-reg.sock");
  node.driver.plugin.ReleaseCalls();
  node.driver.plugin.hold_calls = false;
  node.Advance(seconds(50));
  node.StartAgent();
  EXPECT_EQ(node.Phase("p"), "Running");
}

TEST(DraManager, OneCallPerDriverCoversAllClaimsOfThePod) {
  NodeHarness node;
  node.StartAgent();
  FakeDriver gpu(node, "gpu.example.com", "gpu.sock"), nic(node, "nic.example.com", "nic.sock");
  gpu.Start();
  nic.Start();
  node.CreateClaim("c", {"gpu.example.com/0", "nic.example.com/0"});
  node.CreateClaim("d", {"gpu.example.com/1"});
  node.CreatePod("p", kUsesClaim, {"c", "d"});
  ASSERT_EQ(node.Phase("p"), "Running");
  ASSERT_EQ(gpu.plugin.prepare_calls.size(), 1u);
  EXPECT_EQ(gpu.plugin.prepare_calls[0].size(), 2u);
  ASSERT_EQ(nic.plugin.prepare_calls.size(), 1u);
  EXPECT_EQ(nic.plugin.prepare_calls[0].size(), 1u);
  node.DeletePod("p");
  node.Advance(seconds(1));
  ASSERT_EQ(gpu.plugin.unprepare_calls.size(), 1u);
  EXPECT_EQ(gpu.plugin.unprepare_calls[0].size(), 2u);
}

TEST(DraManager, ACallThatTimesOutIsRetried) {
  GpuNode node;
  node.driver.plugin.hold_calls = true;
  node.CreatePodWithClaim();
  node.Advance(seconds(44));
  EXPECT_TRUE(node.Events("FailedPrepareDynamicResources").empty());
  node.Advance(seconds(2));
  EXPECT_THAT(node.Events("FailedPrepareDynamicResources").at(0), HasSubstr("DeadlineExceeded"));
  node.driver.plugin.hold_calls = false;
  node.driver.plugin.DropCalls();
  node.Advance(seconds(3));
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_GE(node.driver.plugin.prepare_calls.size(), 2u);
  node.driver.plugin.hold_calls = true;
  node.DeletePod("p");
  node.Advance(seconds(80));
  EXPECT_THAT(node.Events("FailedUnprepareDynamicResources").at(0), HasSubstr("DeadlineExceeded"));
  node.driver.plugin.hold_calls = false;
  node.driver.plugin.DropCalls();
  node.Advance(seconds(60));
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(DraManager, ARepeatedPrepareDoesNotDuplicateDevices) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.Advance(seconds(1));
  node.KillAgent();
  node.StartAgent();
  node.CreatePod("q", kUsesClaim, {"c"});
  EXPECT_EQ(node.Phase("q"), "Running");
  EXPECT_THAT(node.history, ElementsAre("prepare c", "prepare c"))
      << "a restart forgets that it was prepared";
  const auto& claims = node.agent->dra().cache().claims();
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims.begin()->second.drivers.at("gpu.example.com").devices.size(), 1u);
  EXPECT_EQ(claims.begin()->second.pod_uids.size(), 2u);
}

TEST(DraManager, RetriesWithBackoffAndAtOnceWhenTheDriverReturns) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.driver.Stop();
  node.DeletePod("p");
  node.Advance(seconds(300));
  EXPECT_NE(node.Phase("p"), "(gone)");
  EXPECT_TRUE(node.driver.plugin.unprepare_calls.empty());
  node.driver.Start();
  EXPECT_EQ(node.driver.plugin.unprepare_calls.size(), 1u) << "not after a minute";
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(DraManager, ClaimsOfDeletedPodsAreUnpreparedWhenTheirDriverRegisters) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.KillAgent();
  node.driver.Stop();
  ASSERT_TRUE(node.api.Delete("Pod", "default/p", {.grace_period_seconds = 0}).ok());
  node.machine.sandboxes.clear();
  node.machine.containers.clear();
  node.StartAgent();
  node.Advance(seconds(5));
  EXPECT_EQ(node.agent->dra().cache().claims().size(), 1u);
  node.driver.Start();
  EXPECT_TRUE(node.agent->dra().cache().claims().empty());
}

TEST(DraManager, LogsEveryStageOfPrepareAndUnprepare) {
  GpuNode node;
  ConfigureLogging(LogFormat::kText, LogLevel::kDebug, RealClock());
  const LoggedLines log;
  const auto count = [&](std::string_view from, std::string_view event, std::string_view to) {
    return log.Count(
        StrCat("from=", Quote(from), " event=", Quote(event), " to=", Quote(to), "\n"));
  };
  node.CreatePodWithClaim();
  ASSERT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(count("Listing", "ClaimsListed", "FetchingClaims"), 1u);
  EXPECT_EQ(count("FetchingClaims", "ClaimsAttached", "WritingIntent"), 1u);
  EXPECT_EQ(count("WritingIntent", "IntentWritten", "CallingDrivers"), 1u);
  EXPECT_EQ(count("CallingDrivers", "DriverAnswered", "CallingDrivers"), 1u);
  EXPECT_EQ(count("CallingDrivers", "AllAnswered", "Succeeded"), 1u);
  node.DeletePod("p");
  node.Advance(seconds(1));
  ASSERT_EQ(node.Phase("p"), "(gone)");
  EXPECT_EQ(count("Detaching", "Detached", "CallingDrivers"), 1u);
  EXPECT_EQ(count("CallingDrivers", "DriverAnswered", "CallingDrivers"), 2u);
  EXPECT_EQ(count("CallingDrivers", "AllAnswered", "Succeeded"), 2u);
  ConfigureLogging(LogFormat::kText, LogLevel::kInfo, RealClock());
}

TEST(DraManager, EveryMetricHasBothNames) {
  GpuNode node;
  node.CreateClaim("c", {"gpu.example.com/dev-0", "ghost.example.com/dev-0!"});
  node.CreatePod("p", kUsesClaim, {"c"});
  for (const std::string prefix : {"\n", "\nkubelet_"}) {
    const std::string text = "\n" + node.metrics.Text();
    EXPECT_THAT(text, HasSubstr(prefix + "dra_resource_claims_in_use{driver_name=\"<any>\"} 1"));
    EXPECT_THAT(
        text, HasSubstr(prefix + "dra_resource_claims_in_use{driver_name=\"gpu.example.com\"} 1"));
    EXPECT_THAT(text, HasSubstr(prefix + "dra_operations_duration_seconds_bucket"));
    EXPECT_THAT(text, HasSubstr(prefix + "dra_grpc_operations_duration_seconds_bucket"));
    EXPECT_THAT(
        text,
        HasSubstr(prefix + "dra_node_prepare_skips_total{driver_name=\"ghost.example.com\"} 1"));
  }
  EXPECT_THAT(
      node.metrics.Text(),
      HasSubstr("method_name=\"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources\""));
  node.DeletePod("p");
  node.Advance(seconds(1));
  for (const std::string prefix : {"\n", "\nkubelet_"}) {
    const std::string text = "\n" + node.metrics.Text();
    EXPECT_THAT(text, HasSubstr(prefix + "dra_resource_claims_in_use{driver_name=\"<any>\"} 0"));
    EXPECT_THAT(
        text,
        HasSubstr(prefix + "dra_node_unprepare_skips_total{driver_name=\"ghost.example.com\"} 1"));
  }
}

}  // namespace
}  // namespace drakkar::node
