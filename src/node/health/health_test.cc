#include <gtest/gtest.h>

#include "base/text/text.h"
#include "node/health/health_cache.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using rpc::DeviceHealthState;
using std::chrono::milliseconds;
using std::chrono::seconds;

const WallTime kNow{seconds(1'800'000'000)};

rpc::HealthReport Report(const std::string& device, DeviceHealthState state, std::string message = "",
                         std::int64_t timeout = 0) {
  return {{.pool_name = "pool",
           .device_name = device,
           .health = state,
           .health_check_timeout_seconds = timeout,
           .message = std::move(message)}};
}

TEST(HealthCache, KeepsAMissingDeviceUntilItsTimeoutThenReadsUnknown) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), kNow);
  EXPECT_TRUE(cache.Update("d", 1, Report("b", DeviceHealthState::kHealthy, "", 60), kNow + seconds(20)).changed.size() == 1);
  EXPECT_EQ(cache.Get({"d", "pool", "a"}, kNow + seconds(30)).health, DeviceHealthState::kHealthy);
  EXPECT_EQ(cache.Get({"d", "pool", "a"}, kNow + seconds(31)).health, DeviceHealthState::kUnknown);
  EXPECT_EQ(*cache.NextExpiry(), kNow + seconds(30));
  const auto expired = cache.Expire(kNow + seconds(31));
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].device, "a");
  EXPECT_EQ(*cache.NextExpiry(), kNow + seconds(80));
}

TEST(HealthCache, OnlyTheInstanceThatReportedADeviceTakesItAway) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), kNow);
  cache.Update("d", 2, Report("a", DeviceHealthState::kUnhealthy), kNow);
  EXPECT_TRUE(cache.ClearInstance("d", 1).empty());
  EXPECT_EQ(cache.Get({"d", "pool", "a"}, kNow).health, DeviceHealthState::kUnhealthy);
  EXPECT_EQ(cache.ClearInstance("d", 2).size(), 1u);
}

TEST(HealthCache, ARefreshIsNoChange) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), kNow);
  EXPECT_TRUE(cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), kNow + seconds(5)).changed.empty());
  EXPECT_EQ(cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy, "warm"), kNow + seconds(6)).changed.size(), 1u);
}

TEST(HealthCache, IsBoundedInDevicesAndMessage) {
  HealthCache cache;
  rpc::HealthReport report;
  for (std::size_t i = 0; i < HealthCache::kMaxDevicesPerDriver + 3; ++i) {
    report.push_back({.pool_name = "p", .device_name = std::to_string(i), .health = DeviceHealthState::kHealthy});
  }
  EXPECT_EQ(cache.Update("d", 1, report, kNow).ignored, 3u);
  const std::string cut = TruncateMessage(std::string(1020, 'x') + "\xc3\xa9\xc3\xa9\xc3\xa9", 1024);
  EXPECT_EQ(cut, std::string(1020, 'x') + "...");
  EXPECT_TRUE(IsValidUtf8(cut));
}

TEST(HealthCache, SurvivesARoundTripThroughItsFile) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kUnhealthy, "<hot>"), kNow + milliseconds(1500));
  EXPECT_EQ(cache.Encode(),
            "{\"d\":{\"Devices\":{\"pool/a\":{\"PoolName\":\"pool\",\"DeviceName\":\"a\",\"Health\":\"Unhealthy\","
            "\"LastUpdated\":\"2027-01-15T08:00:01.5Z\",\"HealthCheckTimeout\":30000000000,\"Message\":\"\\u003chot\\u003e\",\"Since\":\"2027-01-15T08:00:01.5Z\"}}}}");
  HealthCache again;
  ASSERT_TRUE(again.Decode(cache.Encode()).ok());
  EXPECT_EQ(again.Encode(), cache.Encode());
  EXPECT_FALSE(again.Decode("{").ok());
}

TEST(HealthCache, IsEncodedInPiecesWithTheSameResult) {
  HealthCache cache;
  for (int i = 0; i < 7; ++i) {
    cache.Update("a", 1, Report("d" + std::to_string(i), DeviceHealthState::kHealthy), kNow);
    cache.Update("b", 2, Report("d" + std::to_string(i), DeviceHealthState::kUnhealthy), kNow);
  }
  for (std::size_t limit = 1; limit < 9; ++limit) {
    HealthCache::Encoding encoding;
    int pieces = 0;
    while (!encoding.done) {
      cache.EncodeMore(encoding, limit);
      ASSERT_LT(++pieces, 20);
    }
    EXPECT_EQ(encoding.text, cache.Encode());
  }
  HealthCache empty;
  EXPECT_EQ(empty.Encode(), "{}");
  // A device that goes between two pieces leaves a file that can be read.
  HealthCache::Encoding encoding;
  cache.EncodeMore(encoding, 3);
  cache.ClearInstance("a", 1);
  while (!encoding.done) cache.EncodeMore(encoding, 3);
  EXPECT_TRUE(empty.Decode(encoding.text).ok()) << encoding.text;
}

TEST(HealthCache, KnowsSinceWhenADeviceIsAsItIs) {
  HealthCache cache;
  EXPECT_FALSE(cache.Get({"d", "pool", "a"}, kNow).since.has_value());
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), kNow);
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy, "warm"), kNow + seconds(5));
  EXPECT_EQ(*cache.Get({"d", "pool", "a"}, kNow + seconds(5)).since, kNow);
  cache.Update("d", 1, Report("a", DeviceHealthState::kUnhealthy), kNow + seconds(7));
  EXPECT_EQ(*cache.Get({"d", "pool", "a"}, kNow + seconds(8)).since, kNow + seconds(7));
  EXPECT_EQ(*cache.Get({"d", "pool", "a"}, kNow + seconds(60)).since, kNow + seconds(37)) << "unknown since its timeout";
}

TEST(HealthCache, AFileOfKubernetesIsRead) {
  HealthCache cache;
  ASSERT_TRUE(cache.Decode(R"({"d":{"Devices":{"p/a":{"PoolName":"p","DeviceName":"a","Health":"Healthy",
    "LastUpdated":"2027-01-15T08:00:00.123456789Z","HealthCheckTimeout":60000000000,"Message":"","Later":1}}}})").ok());
  EXPECT_EQ(cache.Get({"d", "p", "a"}, kNow + seconds(59)).health, DeviceHealthState::kHealthy);
  EXPECT_EQ(cache.Get({"d", "p", "a"}, kNow + seconds(61)).health, DeviceHealthState::kUnknown);
}

struct HealthNode : GpuNode {
  explicit HealthNode(FeatureGates with = DefaultGates()) : GpuNode(std::move(with)) {
    CreatePodWithClaim();
  }
  void Push(DeviceHealthState state, std::string message = "") {
    driver.plugin.PushHealth(Report("device-c", state, std::move(message)));
    Run();
  }
  std::string Row() {
    const auto status = (*Pod("p"))["status"]["containerStatuses"].at(0)["allocatedResourcesStatus"];
    if (status.empty()) return "(none)";
    const auto resource = status.at(0)["resources"].at(0);
    return StrCat(status.at(0)["name"].str(), " ", resource["health"].str(), " ", resource["message"].str());
  }
};

TEST(DeviceHealth, AChangeIsSeenInThePodStatusAtOnce) {
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
  const std::string name = "drakkar_node_device_health_changes_total{driver_name=\"gpu.example.com\",health=";
  const std::string text = node.metrics.Text();
  EXPECT_NE(text.find(name + "\"Healthy\"} 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find(name + "\"Unhealthy\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find(name + "\"Unknown\"} 1\n"), std::string::npos);
}

TEST(DeviceHealth, ExpiresOnTimeWithoutAnybodyAsking) {
  HealthNode node;
  node.Push(DeviceHealthState::kHealthy);
  node.Advance(seconds(29));
  EXPECT_EQ(node.Row(), "claim:c Healthy ");
  node.Advance(seconds(2));
  EXPECT_EQ(node.Row(), "claim:c Unknown ");
}

TEST(DeviceHealth, TheEndOfTheStreamClearsAndAReconnectBringsItBack) {
  HealthNode node;
  node.Push(DeviceHealthState::kHealthy);
  node.driver.plugin.EndHealth(Ok());
  node.Run();
  EXPECT_EQ(node.Row(), "claim:c Unknown ");
  node.Advance(seconds(2));
  EXPECT_EQ(node.Row(), "claim:c Healthy ") << "the latest report comes with the new stream";
}

TEST(DeviceHealth, APluginWithoutTheServiceRegistersAndReadsUnknown) {
  NodeHarness node;
  FakeDriver driver(node, "gpu.example.com", "gpu.sock");
  driver.plugin.health_supported = false;
  node.StartAgent();
  driver.Start();
  node.CreatePodWithClaim();
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ((*node.Pod("p"))["status"]["containerStatuses"].at(0)["allocatedResourcesStatus"].at(0)["resources"].at(0)["health"].str(),
            "Unknown");
}

TEST(DeviceHealth, WithTheGateOffThereIsNoStreamAndNoRow) {
  HealthNode node(NodeHarness::DefaultGates().With(Gate::kResourceHealthStatus, false));
  EXPECT_EQ(node.driver.plugin.health_watchers(), 0u);
  EXPECT_EQ(node.Row(), "(none)");
}

TEST(DeviceHealth, ANewInstanceIsNotWipedByTheEndOfTheOldOne) {
  HealthNode node;
  node.Push(DeviceHealthState::kHealthy);
  FakeDriver successor(node, "gpu.example.com", "gpu-2.sock");
  successor.Start();
  successor.plugin.PushHealth(Report("device-c", DeviceHealthState::kUnhealthy));
  node.Run();
  EXPECT_EQ(node.Row(), "claim:c Unhealthy ");
  node.driver.Stop();
  EXPECT_EQ(node.Row(), "claim:c Unhealthy ");
}

TEST(DeviceHealth, ADeregisteredInstanceTakesOnlyItsOwnReportsWithIt) {
  HealthNode node;
  FakeDriver other(node, "nic.example.com", "nic.sock");
  other.Start();
  node.CreateClaim("n", {"nic.example.com/dev-0"});
  node.CreatePod("q", R"("containers":[{"name":"a","image":"busybox:1","resources":{"claims":[{"name":"n"}]}}])", {"n"});
  other.plugin.PushHealth(Report("device-n", DeviceHealthState::kHealthy));
  node.Push(DeviceHealthState::kHealthy);
  node.driver.Stop();
  EXPECT_EQ(node.Row(), "claim:c Unknown ");
  EXPECT_EQ((*node.Pod("q"))["status"]["containerStatuses"].at(0)["allocatedResourcesStatus"].at(0)["resources"].at(0)["health"].str(),
            "Healthy");
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
  node.CreatePod("p", R"("initContainers":[{"name":"i","image":"busybox:1","resources":{"claims":[{"name":"c","request":"r"}]}}],
    "containers":[{"name":"a","image":"busybox:1"}])", {"c"});
  driver.plugin.PushHealth(Report("device-c", DeviceHealthState::kUnhealthy));
  node.Run();
  const auto status = (*node.Pod("p"))["status"];
  const auto row = status["initContainerStatuses"].at(0)["allocatedResourcesStatus"].at(0);
  EXPECT_EQ(row["name"].str(), "claim:c/r");
  EXPECT_EQ(row["resources"].at(0)["health"].str(), "Unhealthy");
  EXPECT_TRUE(status["containerStatuses"].at(0)["allocatedResourcesStatus"].empty());
  EXPECT_TRUE(node.Events("DeviceUnhealthy").empty()) << "the pod is not running yet";
}

TEST(DeviceHealth, TheMessageHasAGateOfItsOwn) {
  HealthNode node(NodeHarness::DefaultGates().With(Gate::kResourceHealthStatusMessage, false));
  node.Push(DeviceHealthState::kUnhealthy, "too hot");
  EXPECT_EQ(node.Row(), "claim:c Unhealthy ");
}

TEST(DeviceHealth, APluginThatAdvertisesNoHealthServiceIsStillAsked) {
  NodeHarness node;
  FakeDriver driver(node, "gpu.example.com", "gpu.sock");
  driver.plugin.info.supported_versions = {"v1.DRAPlugin"};
  node.StartAgent();
  driver.Start();
  node.CreatePodWithClaim();
  driver.plugin.PushHealth(Report("device-c", DeviceHealthState::kHealthy));
  node.Run();
  EXPECT_EQ((*node.Pod("p"))["status"]["containerStatuses"].at(0)["allocatedResourcesStatus"].at(0)["resources"].at(0)["health"].str(),
            "Healthy");
}

TEST(DeviceHealth, IsKeptOverARestartOfTheAgentUntilItsTimeout) {
  HealthNode node;
  node.Push(DeviceHealthState::kUnhealthy, "hot");
  node.Advance(seconds(2));
  node.KillAgent();
  node.driver.plugin.health_supported = false;  // nobody says it again
  node.StartAgent();
  EXPECT_EQ(node.Row(), "claim:c Unhealthy hot");
  node.Advance(seconds(31));
  EXPECT_EQ(node.Row(), "claim:c Unknown ");
}

TEST(DeviceHealth, ACorruptCacheIsAnEmptyOneAndTheGateOffKeepsTheFile) {
  NodeHarness node(NodeHarness::DefaultGates().With(Gate::kResourceHealthStatus, false));
  ASSERT_TRUE(node.files.WriteFile("/var/lib/kubelet/dra_health_state", "{broken", 0600).ok());
  node.StartAgent();
  ASSERT_TRUE(node.started.ok());
  node.Advance(seconds(5));
  EXPECT_EQ(*node.files.ReadFile("/var/lib/kubelet/dra_health_state"), "{broken");
  node.KillAgent();
  node.gates = NodeHarness::DefaultGates();
  node.StartAgent();
  EXPECT_TRUE(node.started.ok());
}

TEST(DeviceHealth, ABurstOverManyPodsIsOneStatusWriteEach) {
  GpuNode node;
  rpc::HealthReport bad;
  for (int i = 0; i < 40; ++i) {
    const std::string claim = "c" + std::to_string(i);
    node.CreateClaim(claim, {"gpu.example.com/dev-0"});
    node.CreatePod("p" + std::to_string(i),
                   StrCat(R"("containers":[{"name":"a","image":"busybox:1","resources":{"claims":[{"name":")", claim, R"("}]}}])"),
                   {claim});
    bad.push_back(Report("device-" + claim, DeviceHealthState::kUnhealthy)[0]);
  }
  int writes = 0;
  node.api_fault = [&](const std::string& what) {
    if (what == "update pods/status") ++writes;
    return std::optional<Error>();
  };
  // Ten reports at once, the last one counts.
  for (int i = 0; i < 10; ++i) {
    for (auto& each : bad) each.health = i % 2 == 0 ? DeviceHealthState::kHealthy : DeviceHealthState::kUnhealthy;
    node.driver.plugin.PushHealth(bad);
  }
  node.Run();
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ((*node.Pod("p" + std::to_string(i)))["status"]["containerStatuses"].at(0)["allocatedResourcesStatus"].at(0)["resources"].at(0)["health"].str(),
              "Unhealthy");
  }
  EXPECT_LE(writes, 80);
}

TEST(DeviceHealth, TheCacheIsWrittenAtMostOnceASecond) {
  HealthNode node;
  for (int i = 0; i < 20; ++i) node.Push(i % 2 == 0 ? DeviceHealthState::kHealthy : DeviceHealthState::kUnhealthy);
  EXPECT_FALSE(node.files.Exists("/var/lib/kubelet/dra_health_state"));
  node.Advance(seconds(1));
  EXPECT_TRUE(node.files.Exists("/var/lib/kubelet/dra_health_state"));
}

}  // namespace
}  // namespace drakkar::node
