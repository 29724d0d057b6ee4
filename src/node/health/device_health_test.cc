// Device health as pods, metrics and `drakkar get devices` show it.
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

TEST(DeviceHealth, AChangeShowsInThePodStatusAtOnce) {
  HealthNode node;
  EXPECT_EQ(node.Row(), "claim:c Unknown ");
  node.Push(DeviceHealthState::kHealthy);
  EXPECT_EQ(node.Row(), "claim:c Healthy ");
  node.Push(DeviceHealthState::kUnhealthy, "too hot");
  EXPECT_EQ(node.Row(), "claim:c Unhealthy too hot");
  EXPECT_EQ(node.Events("DeviceUnhealthy").size(), 1u);
  EXPECT_EQ(node.Phase("p"), "Running") << "health never stops a pod";
}

TEST(DeviceHealth, ChangesAreCountedByDriverAndState) {
  HealthNode node;
  node.Push(DeviceHealthState::kHealthy);
  node.Push(DeviceHealthState::kUnhealthy);
  node.Push(DeviceHealthState::kUnhealthy);  // nothing new
  node.Push(DeviceHealthState::kHealthy);
  node.Advance(seconds(31));  // and it expires
  const std::string name =
      "drakkar_node_device_health_changes_total{driver_name=\"gpu.example.com\",health=";
  const std::string text = node.metrics.Text();
  EXPECT_NE(text.find(name + "\"Healthy\"} 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find(name + "\"Unhealthy\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find(name + "\"Unknown\"} 1\n"), std::string::npos);
}

TEST(DeviceHealth, ExpiresOnTimeWithoutBeingQueried) {
  HealthNode node;
  node.Push(DeviceHealthState::kHealthy);
  node.Advance(seconds(29));
  EXPECT_EQ(node.Row(), "claim:c Healthy ");
  node.Advance(seconds(2));
  EXPECT_EQ(node.Row(), "claim:c Unknown ");
}

TEST(DeviceHealth, InitContainersHaveRowsAndContainersWithoutClaimsHaveNone) {
  NodeHarness node;
  FakeDriver driver(node, "gpu.example.com", "gpu.sock");
  node.machine.program_of = [](const ContainerConfig& config) {
    HollowProgram program;
    if (config.name == "i") program.runs_for = seconds(60);
    return program;
  };
  node.StartAgent();
  driver.Start();
  node.CreateClaim("c", {"gpu.example.com/dev-0"});
  node.CreatePod(
      "p",
      R"("initContainers":[{"name":"i","image":"busybox:1","resources":{"claims":[{"name":"c","request":"r"}]}}],
    "containers":[{"name":"a","image":"busybox:1"}])",
      {"c"});
  driver.plugin.PushHealth(Report("device-c", DeviceHealthState::kUnhealthy));
  node.Run();
  const auto status = (*node.Pod("p"))["status"];
  const auto row = status["initContainerStatuses"].at(0)["allocatedResourcesStatus"].at(0);
  EXPECT_EQ(row["name"].str(), "claim:c/r");
  EXPECT_EQ(row["resources"].at(0)["health"].str(), "Unhealthy");
  EXPECT_TRUE(status["containerStatuses"].at(0)["allocatedResourcesStatus"].empty());
  EXPECT_TRUE(node.Events("DeviceUnhealthy").empty()) << "the pod is not running yet";
}

TEST(DeviceHealth, TheMessageHasItsOwnGate) {
  HealthNode node(NodeHarness::DefaultGates().With(Gate::kResourceHealthStatusMessage, false));
  node.Push(DeviceHealthState::kUnhealthy, "too hot");
  EXPECT_EQ(node.Row(), "claim:c Unhealthy ");
}

TEST(DeviceHealth, ABurstCausesOneStatusWritePerPod) {
  GpuNode node;
  rpc::HealthReport bad;
  for (int i = 0; i < 40; ++i) {
    const std::string claim = "c" + std::to_string(i);
    node.CreateClaim(claim, {StrCat("gpu.example.com/dev-", i)});
    node.CreatePod(
        "p" + std::to_string(i),
        StrCat(R"("containers":[{"name":"a","image":"busybox:1","resources":{"claims":[{"name":")",
               claim, R"("}]}}])"),
        {claim});
    bad.push_back(Report("device-" + claim, DeviceHealthState::kUnhealthy)[0]);
  }
  int writes = 0;
  node.api_fault = [&](const std::string& what) {
    if (what == "update pods/status") ++writes;
    return std::optional<Error>();
  };
  // Ten reports at once; the last one wins.
  for (int i = 0; i < 10; ++i) {
    for (auto& each : bad)
      each.health = i % 2 == 0 ? DeviceHealthState::kHealthy : DeviceHealthState::kUnhealthy;
    node.driver.plugin.PushHealth(bad);
  }
  node.Run();
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ((*node.Pod("p" + std::to_string(i)))["status"]["containerStatuses"]
                  .at(0)["allocatedResourcesStatus"]
                  .at(0)["resources"]
                  .at(0)["health"]
                  .str(),
              "Unhealthy");
  }
  EXPECT_EQ(writes, 40) << "one for each pod";
}

TEST(DeviceHealth, SettingTheWallClockDoesNotAffectExpiry) {
  HealthNode node;
  node.Push(DeviceHealthState::kHealthy);
  node.loop.fake_clock().JumpWall(std::chrono::hours(2));
  node.Advance(seconds(29));
  EXPECT_EQ(node.Row(), "claim:c Healthy ");
  node.Push(DeviceHealthState::kUnhealthy);
  node.loop.fake_clock().JumpWall(-std::chrono::hours(5));
  node.Advance(seconds(29));
  EXPECT_EQ(node.Row(), "claim:c Unhealthy ");
  node.Advance(seconds(2));
  EXPECT_EQ(node.Row(), "claim:c Unknown ");
}

TEST(DeviceHealth, EachDeviceHasItsOwnTimeout) {
  HealthNode node;
  node.Push(DeviceHealthState::kHealthy, "", 5);
  node.Advance(seconds(4));
  EXPECT_EQ(node.Row(), "claim:c Healthy ");
  node.Advance(seconds(2));
  EXPECT_EQ(node.Row(), "claim:c Unknown ");
  node.Push(DeviceHealthState::kHealthy, "", 90);
  node.Advance(seconds(89));
  EXPECT_EQ(node.Row(), "claim:c Healthy ");
  node.Advance(seconds(2));
  EXPECT_EQ(node.Row(), "claim:c Unknown ");
}

TEST(DeviceHealth, TheDeviceListShowsSinceWhenADeviceIsUnknown) {
  HealthNode node;
  EXPECT_EQ(node.Line(), "Unknown - <none>") << "nobody has said anything";
  node.Push(DeviceHealthState::kHealthy, "cool");
  node.Advance(seconds(3));
  EXPECT_EQ(node.Line(), "Healthy cool 3");
  node.Advance(seconds(30));
  EXPECT_EQ(node.Line(), "Unknown - 3") << "its time was over";
  node.Push(DeviceHealthState::kHealthy);
  node.driver.Stop();
  node.Advance(seconds(7));
  EXPECT_EQ(node.Line(), "Unknown - 7") << "its driver is gone";
}

TEST(DeviceHealth, WithTheMessageGateOffNeitherEventsNorTheListShowIt) {
  HealthNode node(NodeHarness::DefaultGates().With(Gate::kResourceHealthStatusMessage, false));
  node.Push(DeviceHealthState::kUnhealthy, "too hot");
  EXPECT_EQ(node.Line(), "Unhealthy - 0");
  EXPECT_EQ(node.Events("DeviceUnhealthy").at(0),
            "device device-c of pool pool of driver gpu.example.com is unhealthy");
}

TEST(DeviceHealth, DevicesAreCountedByDriverAndCurrentHealth) {
  HealthNode node;
  auto count = [&](const char* health) {
    node.agent->health().CountDevices();
    const std::string text = node.metrics.Text();
    const std::string name =
        StrCat("\ndrakkar_node_devices{driver_name=\"gpu.example.com\",health=\"", health, "\"} ");
    const std::size_t at = text.find(name);
    return at == std::string::npos ? std::string("(none)") : text.substr(at + name.size(), 1);
  };
  EXPECT_EQ(count("Unknown"), "1") << "held, and nobody says anything of it";
  rpc::HealthReport report = Report("device-c", DeviceHealthState::kUnhealthy);
  report.push_back(Report("other", DeviceHealthState::kHealthy)[0]);
  node.driver.plugin.PushHealth(report);
  node.Run();
  EXPECT_EQ(count("Healthy"), "1");
  EXPECT_EQ(count("Unhealthy"), "1");
  EXPECT_EQ(count("Unknown"), "0");
  node.driver.Stop();
  EXPECT_EQ(count("Healthy"), "0");
  EXPECT_EQ(count("Unknown"), "1");
  node.DeletePod("p");
  node.Advance(seconds(1));
  node.driver.Start();
  node.driver.plugin.EndHealth(Ok());
  node.Run();
  EXPECT_EQ(count("Unknown"), "(none)") << "nothing is known of this driver's devices";
}

}  // namespace
}  // namespace drakkar::node
