// The device health in the status of a pod that has ended.
#include <gtest/gtest.h>

#include "api/meta/time.h"
#include "base/text/text.h"
#include "node/dra/dra_manager.h"
#include "node/health/health_monitor.h"
#include "node/testing/health_node.h"
#include "node/testing/logged_lines.h"

namespace drakkar::node {
namespace {

using rpc::DeviceHealthState;
using std::chrono::milliseconds;
using std::chrono::seconds;

// All rows of the container's status, as "name health; ...".
std::string Rows(NodeHarness& node, const std::string& pod) {
  std::string text;
  for (api::Value row : (*node.Pod(pod))["status"]["containerStatuses"]
                            .at(0)["allocatedResourcesStatus"]
                            .elements()) {
    text += StrCat(row["name"].str(), " ", row["resources"].at(0)["health"].str(), "; ");
  }
  return text;
}

struct FailingPod : GpuNode {
  // The pod fails after ten seconds, and its health is valid for longer.
  FailingPod() {
    RunFor(seconds(10), 1);
    CreatePodWithClaim();
    Push(DeviceHealthState::kHealthy);
  }
  void Push(DeviceHealthState state, std::string message = "") {
    driver.plugin.PushHealth(Report("device-c", state, std::move(message), 600));
  }
};

TEST(FailedPodHealth, AFailedPodKeepsItsHealthRowsAndMessages) {
  FailingPod node;
  node.Push(DeviceHealthState::kUnhealthy, "fell off the bus");
  node.Advance(seconds(11));
  ASSERT_EQ(node.Phase("p"), "Failed");
  EXPECT_TRUE(node.agent->dra().cache().claims().empty());
  EXPECT_EQ(Rows(node, "p"), "claim:c Unhealthy; ");
  EXPECT_EQ((*node.Pod("p"))["status"]["containerStatuses"]
                .at(0)["allocatedResourcesStatus"]
                .at(0)["resources"]
                .at(0)["message"]
                .str(),
            "fell off the bus");
  node.Push(DeviceHealthState::kHealthy);
  node.driver.Stop();
  node.Advance(seconds(60));
  EXPECT_EQ(Rows(node, "p"), "claim:c Unhealthy; ") << "it no longer holds the device";
}

TEST(FailedPodHealth, EveryDeviceOfAClaimHasARowInEveryPodThatSharesIt) {
  GpuNode node;
  node.driver.plugin.prepare_claim = [](const rpc::ClaimReference&) {
    rpc::PrepareResult result;
    for (const char* device : {"dev-0", "dev-1"}) {
      result.devices.push_back(
          {.request_names = {"r"}, .pool_name = "pool", .device_name = device});
    }
    return result;
  };
  node.CreateClaim("c", {"gpu.example.com/dev-0", "gpu.example.com/dev-1"});
  node.CreatePod("p", kUsesClaim, {"c"});
  node.CreatePod("q", kUsesClaim, {"c"});
  rpc::HealthReport report = Report("dev-0", DeviceHealthState::kHealthy);
  report.push_back(Report("dev-1", DeviceHealthState::kUnhealthy)[0]);
  node.driver.plugin.PushHealth(report);
  node.Run();
  for (const char* pod : {"p", "q"}) {
    const api::Value rows =
        (*node.Pod(pod))["status"]["containerStatuses"].at(0)["allocatedResourcesStatus"];
    ASSERT_EQ(rows.size(), 1u);
    const api::Value resources = rows.at(0)["resources"];
    ASSERT_EQ(resources.size(), 2u);
    EXPECT_EQ(resources.at(0)["resourceID"].str(), "gpu.example.com/pool/dev-0");
    EXPECT_EQ(resources.at(0)["health"].str(), "Healthy");
    EXPECT_EQ(resources.at(1)["resourceID"].str(), "gpu.example.com/pool/dev-1");
    EXPECT_EQ(resources.at(1)["health"].str(), "Unhealthy");
  }
  EXPECT_EQ(node.Events("DeviceUnhealthy").size(), 2u) << "one for each pod";
}

TEST(FailedPodHealth, AFailedPodKeepsTheHealthFromWhenItsClaimsWereUnprepared) {
  FailingPod node;
  node.Run();
  node.api_fault = [](const std::string& what) -> std::optional<Error> {
    if (what == "update pods/status") return Unavailable("restarting");
    return std::nullopt;
  };
  node.Advance(seconds(9));
  node.Push(DeviceHealthState::kUnhealthy);
  node.Advance(seconds(2));
  ASSERT_TRUE(node.agent->dra().cache().claims().empty());
  node.api_fault = nullptr;
  node.Advance(seconds(60));
  ASSERT_EQ(node.Phase("p"), "Failed");
  EXPECT_EQ(Rows(node, "p"), "claim:c Unhealthy; ");
}

TEST(FailedPodHealth, RowsSurviveACrashBetweenUnprepareAndTheFinalStatus) {
  FailingPod node;
  node.Push(DeviceHealthState::kUnhealthy);
  node.Run();
  ASSERT_EQ(Rows(node, "p"), "claim:c Unhealthy; ");
  node.api_fault = [](const std::string& what) -> std::optional<Error> {
    if (what == "update pods/status") return Unavailable("restarting");
    return std::nullopt;
  };
  node.Advance(seconds(12));
  ASSERT_TRUE(node.agent->dra().cache().claims().empty());
  node.KillAgent();
  node.api_fault = nullptr;
  node.StartAgent();
  node.Advance(seconds(2));
  ASSERT_EQ(node.Phase("p"), "Failed");
  EXPECT_EQ(Rows(node, "p"), "claim:c Unhealthy; ");
}

TEST(FailedPodHealth, AFailedPodKeepsRowsOfAClaimThatAnotherPodStillUses) {
  GpuNode node;
  node.machine.program_of = [](const ContainerConfig& config) {
    HollowProgram program{.exit_code = 1};
    if (config.name == "a") program.runs_for = seconds(10);
    return program;
  };
  node.CreateClaim("c", {"gpu.example.com/dev-0"});
  node.CreateClaim("s", {"gpu.example.com/dev-1"});
  node.CreatePod(
      "p",
      R"("restartPolicy":"Never","containers":[{"name":"a","image":"busybox:1","resources":{"claims":[{"name":"c"},{"name":"s"}]}}])",
      {"c", "s"});
  node.CreatePod(
      "q",
      R"("containers":[{"name":"b","image":"busybox:1","resources":{"claims":[{"name":"s"}]}}])",
      {"s"});
  auto push = [&](DeviceHealthState state) {
    rpc::HealthReport report = Report("device-c", state, "", 600);
    report.push_back(Report("device-s", state, "", 600)[0]);
    node.driver.plugin.PushHealth(report);
    node.Run();
  };
  push(DeviceHealthState::kUnhealthy);
  EXPECT_EQ(Rows(node, "q"), "claim:s Unhealthy; ");
  node.Advance(seconds(11));
  ASSERT_EQ(node.Phase("p"), "Failed");
  push(DeviceHealthState::kHealthy);
  EXPECT_EQ(Rows(node, "p"), "claim:c Unhealthy; claim:s Unhealthy; ");
  EXPECT_EQ(Rows(node, "q"), "claim:s Healthy; ");
}

}  // namespace
}  // namespace drakkar::node
