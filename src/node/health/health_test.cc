#include <gtest/gtest.h>

#include "api/meta/time.h"
#include "base/text/text.h"
#include "node/dra/dra_manager.h"
#include "node/health/health_cache.h"
#include "node/health/health_monitor.h"
#include "node/testing/node_harness.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

using rpc::DeviceHealthState;
using std::chrono::milliseconds;
using std::chrono::seconds;

// On both clocks, which have nothing to do with each other.
HealthTime After(Duration passed = {}) {
  return {WallTime{seconds(1'800'000'000)} + passed, MonotonicTime{seconds(77)} + passed};
}

rpc::HealthReport Report(const std::string& device, DeviceHealthState state,
                         std::string message = "", std::int64_t timeout = 0) {
  return {{.pool_name = "pool",
           .device_name = device,
           .health = state,
           .health_check_timeout_seconds = timeout,
           .message = std::move(message)}};
}

TEST(HealthCache, KeepsAMissingDeviceUntilItsTimeoutThenReadsUnknown) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After());
  EXPECT_TRUE(
      cache.Update("d", 1, Report("b", DeviceHealthState::kHealthy, "", 60), After(seconds(20)))
          .changed.size() == 1);
  EXPECT_EQ(cache.Get({"d", "pool", "a"}, After(seconds(30))).health, DeviceHealthState::kHealthy);
  EXPECT_EQ(cache.Get({"d", "pool", "a"}, After(seconds(31))).health, DeviceHealthState::kUnknown);
  EXPECT_EQ(*cache.NextExpiry(), After(seconds(30)).tick);
  const auto expired = cache.Expire(After(seconds(31)));
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].device, "a");
  EXPECT_EQ(*cache.NextExpiry(), After(seconds(80)).tick);
}

TEST(HealthCache, OnlyTheInstanceThatReportedADeviceTakesItAway) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After());
  cache.Update("d", 2, Report("a", DeviceHealthState::kUnhealthy), After());
  EXPECT_TRUE(cache.ClearInstance("d", 1, After()).empty());
  EXPECT_EQ(cache.Get({"d", "pool", "a"}, After()).health, DeviceHealthState::kUnhealthy);
  EXPECT_EQ(cache.ClearInstance("d", 2, After()).size(), 1u);
}

TEST(HealthCache, ARefreshIsNoChange) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After());
  EXPECT_TRUE(cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After(seconds(5)))
                  .changed.empty());
  EXPECT_EQ(
      cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy, "warm"), After(seconds(6)))
          .changed.size(),
      1u);
}

TEST(HealthCache, IsBoundedInDevicesAndMessage) {
  HealthCache cache;
  rpc::HealthReport report;
  for (std::size_t i = 0; i < HealthCache::kMaxDevicesPerDriver + 3; ++i) {
    report.push_back({.pool_name = "p",
                      .device_name = std::to_string(i),
                      .health = DeviceHealthState::kHealthy});
  }
  EXPECT_EQ(cache.Update("d", 1, report, After()).ignored, 3u);
  const std::string cut =
      TruncateMessage(std::string(1020, 'x') + "\xc3\xa9\xc3\xa9\xc3\xa9", 1024);
  EXPECT_EQ(cut, std::string(1020, 'x') + "...");
  EXPECT_TRUE(IsValidUtf8(cut));
}

TEST(HealthCache, SurvivesARoundTripThroughItsFile) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kUnhealthy, "<hot>"),
               After(milliseconds(1500)));
  EXPECT_EQ(cache.Encode(),
            "{\"d\":{\"Devices\":{\"pool/"
            "a\":{\"PoolName\":\"pool\",\"DeviceName\":\"a\",\"Health\":\"Unhealthy\","
            "\"LastUpdated\":\"2027-01-15T08:00:01.5Z\",\"HealthCheckTimeout\":30000000000,"
            "\"Message\":\"\\u003chot\\u003e\",\"Since\":\"2027-01-15T08:00:01.5Z\"}}}}");
  HealthCache again;
  ASSERT_TRUE(again.Decode(cache.Encode(), After(seconds(2))).ok());
  EXPECT_EQ(again.Encode(), cache.Encode());
  EXPECT_FALSE(again.Decode("{", After()).ok());
}

TEST(HealthCache, IsEncodedInPiecesWithTheSameResult) {
  HealthCache cache;
  for (int i = 0; i < 7; ++i) {
    cache.Update("a", 1, Report("d" + std::to_string(i), DeviceHealthState::kHealthy), After());
    cache.Update("b", 2, Report("d" + std::to_string(i), DeviceHealthState::kUnhealthy), After());
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
  cache.ClearInstance("a", 1, After());
  while (!encoding.done) cache.EncodeMore(encoding, 3);
  EXPECT_TRUE(empty.Decode(encoding.text, After()).ok()) << encoding.text;
}

TEST(HealthCache, KnowsSinceWhenADeviceIsAsItIs) {
  HealthCache cache;
  EXPECT_FALSE(cache.Get({"d", "pool", "a"}, After()).since.has_value());
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After());
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy, "warm"), After(seconds(5)));
  EXPECT_EQ(*cache.Get({"d", "pool", "a"}, After(seconds(5))).since, After().wall);
  cache.Update("d", 1, Report("a", DeviceHealthState::kUnhealthy), After(seconds(7)));
  EXPECT_EQ(*cache.Get({"d", "pool", "a"}, After(seconds(8))).since, After(seconds(7)).wall);
  EXPECT_EQ(*cache.Get({"d", "pool", "a"}, After(seconds(60))).since, After(seconds(37)).wall)
      << "unknown since its timeout";
}

TEST(HealthCache, AFileOfKubernetesIsRead) {
  HealthCache cache;
  ASSERT_TRUE(
      cache
          .Decode(R"({"d":{"Devices":{"p/a":{"PoolName":"p","DeviceName":"a","Health":"Healthy",
    "LastUpdated":"2027-01-15T08:00:00.123456789Z","HealthCheckTimeout":60000000000,"Message":"","Later":1}}}})",
                  After(seconds(1)))
          .ok());
  EXPECT_EQ(cache.Get({"d", "p", "a"}, After(seconds(59))).health, DeviceHealthState::kHealthy);
  EXPECT_EQ(cache.Get({"d", "p", "a"}, After(seconds(61))).health, DeviceHealthState::kUnknown);
}

TEST(HealthCache, WhatTheFileSaysOfTheFutureCountsAsOfNow) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After(seconds(3'600)));
  HealthCache again;
  ASSERT_TRUE(again.Decode(cache.Encode(), After()).ok());
  EXPECT_EQ(again.Get({"d", "pool", "a"}, After(seconds(30))).health, DeviceHealthState::kHealthy);
  EXPECT_EQ(*again.Get({"d", "pool", "a"}, After()).since, After().wall);
  EXPECT_EQ(again.Get({"d", "pool", "a"}, After(seconds(31))).health, DeviceHealthState::kUnknown);
  ASSERT_TRUE(
      again
          .Decode(R"({"d":{"Devices":{"p/a":{"PoolName":"p","DeviceName":"a","Health":"Healthy",
    "LastUpdated":"1971-01-01T00:00:00Z","HealthCheckTimeout":9223372036854775807}}}})",
                  After())
          .ok());
  EXPECT_EQ(again.Get({"d", "p", "a"}, After()).health, DeviceHealthState::kUnknown)
      << "of long ago";
}

TEST(HealthCache, ExpiryGoesByTheClockThatNobodySets) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After());
  HealthTime now = After(seconds(30));
  now.wall += std::chrono::hours(1);
  EXPECT_TRUE(cache.Expire(now).empty());
  EXPECT_EQ(cache.Get({"d", "pool", "a"}, now).health, DeviceHealthState::kHealthy);
  now = After(seconds(31));
  now.wall -= std::chrono::hours(1);
  EXPECT_EQ(cache.Get({"d", "pool", "a"}, now).health, DeviceHealthState::kUnknown);
  EXPECT_EQ(cache.Expire(now).size(), 1u);
}

TEST(HealthCache, RemembersSinceWhenADeviceIsUnknown) {
  HealthCache cache;
  cache.Update("d", 1, Report("expires", DeviceHealthState::kHealthy), After());
  cache.Expire(After(seconds(40)));
  EXPECT_EQ(*cache.Get({"d", "pool", "expires"}, After(seconds(50))).since,
            After(seconds(30)).wall);
  cache.Update("d", 1, Report("cleared", DeviceHealthState::kHealthy), After(seconds(50)));
  cache.ClearInstance("d", 1, After(seconds(55)));
  EXPECT_EQ(*cache.Get({"d", "pool", "cleared"}, After(seconds(60))).since,
            After(seconds(55)).wall);
  EXPECT_TRUE(cache.List(After(seconds(60))).empty()) << "nobody reports them";
  cache.Update("d", 2, Report("cleared", DeviceHealthState::kUnknown), After(seconds(61)));
  EXPECT_EQ(*cache.Get({"d", "pool", "cleared"}, After(seconds(62))).since, After(seconds(55)).wall)
      << "as before";
  cache.Update("d", 2, Report("expires", DeviceHealthState::kHealthy), After(seconds(63)));
  EXPECT_EQ(*cache.Get({"d", "pool", "expires"}, After(seconds(64))).since,
            After(seconds(63)).wall);
  cache.Forget({"d", "pool", "expires"});
  EXPECT_EQ(cache.Get({"d", "pool", "expires"}, After(seconds(64))).health,
            DeviceHealthState::kHealthy);
}

TEST(HealthCache, WhatIsRememberedIsBounded) {
  HealthCache cache;
  for (const char* driver : {"d", "e"}) {
    rpc::HealthReport report;
    for (std::size_t i = 0; i < HealthCache::kMaxRemembered; ++i) {
      report.push_back({.pool_name = "p",
                        .device_name = std::to_string(i),
                        .health = DeviceHealthState::kHealthy});
    }
    cache.Update(driver, 1, report, After());
    cache.ClearInstance(driver, 1, After());
  }
  EXPECT_FALSE(cache.Get({"d", "p", "7"}, After()).since.has_value());
  EXPECT_TRUE(cache.Get({"e", "p", "7"}, After()).since.has_value());
}

struct HealthNode : GpuNode {
  explicit HealthNode(FeatureGates with = DefaultGates()) : GpuNode(std::move(with)) {
    CreatePodWithClaim();
  }
  void Push(DeviceHealthState state, std::string message = "", std::int64_t timeout = 0) {
    driver.plugin.PushHealth(Report("device-c", state, std::move(message), timeout));
    Run();
  }
  // The line of `drakkar get devices`: health, message, since in seconds ago.
  std::string Line() {
    const api::TreePtr tree = agent->health().ListDevices().Freeze();
    const api::Value item = tree->root().at(0);
    const auto since = api::ParseTime(item["since"].str());
    const auto ago =
        since.ok() ? std::to_string((loop.clock().Now() - *since) / seconds(1)) : "<none>";
    return StrCat(item["health"].str(), " ", item["message"].str("-"), " ", ago);
  }
  std::string Row() {
    const auto status =
        (*Pod("p"))["status"]["containerStatuses"].at(0)["allocatedResourcesStatus"];
    if (status.empty()) return "(none)";
    const auto resource = status.at(0)["resources"].at(0);
    return StrCat(status.at(0)["name"].str(), " ", resource["health"].str(), " ",
                  resource["message"].str());
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
  const std::string name =
      "drakkar_node_device_health_changes_total{driver_name=\"gpu.example.com\",health=";
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
  EXPECT_EQ((*node.Pod("p"))["status"]["containerStatuses"]
                .at(0)["allocatedResourcesStatus"]
                .at(0)["resources"]
                .at(0)["health"]
                .str(),
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

TEST(DeviceHealth, AnOldInstanceCannotOverruleItsSuccessor) {
  HealthNode node;
  node.Push(DeviceHealthState::kHealthy);
  FakeDriver successor(node, "gpu.example.com", "gpu-2.sock");
  successor.Start();
  EXPECT_EQ(node.Row(), "claim:c Healthy ") << "known until the successor says otherwise";
  successor.plugin.PushHealth(Report("device-c", DeviceHealthState::kUnhealthy, "too hot"));
  node.Run();
  node.Push(DeviceHealthState::kHealthy);
  EXPECT_EQ(node.Row(), "claim:c Unhealthy too hot");
}

TEST(DeviceHealth, WhatAnOldInstanceReportedExpiresIfItsSuccessorNeverConfirmsIt) {
  HealthNode node;
  node.Push(DeviceHealthState::kHealthy);
  FakeDriver successor(node, "gpu.example.com", "gpu-2.sock");
  successor.Start();
  node.Advance(seconds(31));
  EXPECT_EQ(node.Row(), "claim:c Unknown ");
}

TEST(DeviceHealth, ASuccessorWithoutHealthMakesItUnknown) {
  HealthNode node;
  node.Push(DeviceHealthState::kHealthy);
  FakeDriver successor(node, "gpu.example.com", "gpu-2.sock");
  successor.plugin.health_supported = false;
  successor.Start();
  EXPECT_EQ(node.Row(), "claim:c Unknown ");
}

TEST(DeviceHealth, AfterAFailedUpdateTheOldInstanceIsAskedAgain) {
  HealthNode node;
  node.Push(DeviceHealthState::kHealthy);
  FakeDriver successor(node, "gpu.example.com", "gpu-2.sock");
  successor.Start();
  successor.plugin.PushHealth(Report("device-c", DeviceHealthState::kUnhealthy));
  node.Run();
  ASSERT_EQ(node.Row(), "claim:c Unhealthy ");
  successor.Kill();
  node.Run();
  EXPECT_EQ(node.driver.plugin.health_watchers(), 1u);
  EXPECT_EQ(node.Row(), "claim:c Healthy ");
}

TEST(DeviceHealth, AMessageGoesWithTheReportItCameWith) {
  HealthNode node;
  node.Push(DeviceHealthState::kUnknown, "not probed yet");
  ASSERT_EQ(node.Row(), "claim:c Unknown not probed yet");
  node.Advance(seconds(31));
  EXPECT_EQ(node.Row(), "claim:c Unknown ") << "expired";
  node.Push(DeviceHealthState::kUnknown, "not probed yet");
  ASSERT_EQ(node.Row(), "claim:c Unknown not probed yet");
  node.driver.Stop();
  EXPECT_EQ(node.Row(), "claim:c Unknown ") << "the stream has ended";
}

// What was logged while it exists.
class LoggedLines {
 public:
  LoggedLines() {
    SetLogSink([this](std::string_view line) { text_ += StrCat(line, "\n"); });
  }
  ~LoggedLines() { SetLogSink(nullptr); }
  std::size_t Count(std::string_view message) const {
    std::size_t count = 0;
    for (std::size_t at = text_.find(message); at != text_.npos; at = text_.find(message, at + 1)) {
      ++count;
    }
    return count;
  }

 private:
  std::string text_;
};

TEST(DeviceHealth, TheEndOfAStreamIsLoggedWithItsReason) {
  HealthNode node;
  node.Push(DeviceHealthState::kHealthy);
  LoggedLines log;
  node.driver.plugin.EndHealth(Ok());
  node.Advance(seconds(2));
  EXPECT_EQ(log.Count("\"health stream ended\" driver=\"gpu.example.com\""), 1u);
  node.driver.plugin.EndHealth(Unavailable("out of memory"));
  node.Run();
  EXPECT_EQ(log.Count("\"health stream failed\" driver=\"gpu.example.com\""), 1u);
  EXPECT_EQ(log.Count("out of memory"), 1u);
  node.Advance(seconds(2));
  FakeDriver successor(node, "gpu.example.com", "gpu-2.sock");
  successor.Start();
  EXPECT_EQ(log.Count("health stream cancelled: another instance of the driver took over"), 1u);
  successor.Stop();
  node.driver.Stop();
  EXPECT_GE(log.Count("health stream"), 4u);
}

TEST(DeviceHealth, ADriverWithoutHealthIsLoggedOnce) {
  NodeHarness node;
  FakeDriver driver(node, "gpu.example.com", "gpu.sock");
  driver.plugin.health_supported = false;
  LoggedLines log;
  node.StartAgent();
  driver.Start();
  node.Advance(seconds(120));
  EXPECT_EQ(log.Count("driver does not support device health"), 1u);
}

TEST(DeviceHealth, ADeregisteredInstanceIsLogged) {
  HealthNode node;
  LoggedLines log;
  ASSERT_TRUE(node.files.Remove(StrCat(HollowHost::kRegistry, "/gpu.sock")).ok());
  node.watcher.Emit(HollowHost::kRegistry, FileChange::kRemoved, "gpu.sock");
  node.Run();
  EXPECT_EQ(log.Count("health stream cancelled: the driver was deregistered"), 1u);
}

TEST(DeviceHealth, AStreamThatKeepsFailingIsLoggedOnce) {
  HealthNode node;
  node.Push(DeviceHealthState::kHealthy);
  LoggedLines log;
  node.driver.Kill();
  node.Advance(seconds(300));
  EXPECT_EQ(log.Count("health stream failed"), 1u);
}

TEST(DeviceHealth, ADeregisteredInstanceTakesOnlyItsOwnReportsWithIt) {
  HealthNode node;
  FakeDriver other(node, "nic.example.com", "nic.sock");
  other.Start();
  node.CreateClaim("n", {"nic.example.com/dev-0"});
  node.CreatePod(
      "q",
      R"("containers":[{"name":"a","image":"busybox:1","resources":{"claims":[{"name":"n"}]}}])",
      {"n"});
  other.plugin.PushHealth(Report("device-n", DeviceHealthState::kHealthy));
  node.Push(DeviceHealthState::kHealthy);
  node.driver.Stop();
  EXPECT_EQ(node.Row(), "claim:c Unknown ");
  EXPECT_EQ((*node.Pod("q"))["status"]["containerStatuses"]
                .at(0)["allocatedResourcesStatus"]
                .at(0)["resources"]
                .at(0)["health"]
                .str(),
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
  EXPECT_EQ((*node.Pod("p"))["status"]["containerStatuses"]
                .at(0)["allocatedResourcesStatus"]
                .at(0)["resources"]
                .at(0)["health"]
                .str(),
            "Healthy");
}

TEST(DeviceHealth, WhatServesADriverNextIsAskedFromTheNewestServiceOn) {
  using rpc::HealthService;
  NodeHarness node;
  FakeDriver driver(node, "gpu.example.com", "unused.sock");
  rpc::FakeDraPlugin& plugin = driver.plugin;
  plugin.info.supported_versions = {"v1.DRAPlugin", "v1.DRAResourceHealth",
                                    "v1alpha1.DRAResourceHealth"};
  plugin.info.endpoint = "/service.sock";
  plugin.PushHealth(Report("device-c", DeviceHealthState::kHealthy));
  rpc::ServiceSet registration, service;
  registration.registration = &plugin;
  service.dra = &plugin;
  service.health = &plugin;
  std::unique_ptr<rpc::Server> server;
  auto health_with = [&](std::vector<HealthService> served) {
    if (server) server->Stop();
    service.health_services = std::move(served);
    server = rpc::CreateServer(node.transport, "/service.sock", service);
    EXPECT_TRUE(server->Start().ok());
    node.Advance(seconds(2));
    const auto status =
        (*node.Pod("p"))["status"]["containerStatuses"].at(0)["allocatedResourcesStatus"];
    return std::string(status.at(0)["resources"].at(0)["health"].str());
  };
  node.StartAgent();
  auto registrar = rpc::CreateServer(node.transport, StrCat(HollowHost::kRegistry, "/gpu-reg.sock"),
                                     registration);
  ASSERT_TRUE(registrar->Start().ok());
  node.CreatePodWithClaim();
  EXPECT_EQ(health_with({HealthService::kV1alpha1}), "Healthy");
  EXPECT_EQ(health_with({HealthService::kV1}), "Healthy");
  EXPECT_EQ(health_with({}), "Unknown");
  EXPECT_EQ(health_with({HealthService::kV1}), "Healthy");
  EXPECT_EQ(plugin.health_watchers(), 3u) << "one stream to each that had the service";
  EXPECT_EQ(plugin.notifications.size(), 1u) << "all behind one registration";
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
  // Ten reports at once, the last one counts.
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

TEST(DeviceHealth, AClockThatIsSetDelaysAndHastensNothing) {
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

TEST(DeviceHealth, ADeviceHasATimeoutOfItsOwn) {
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

TEST(DeviceHealth, TheListSaysSinceWhenADeviceIsUnknown) {
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

TEST(DeviceHealth, WithoutTheMessageNeitherEventsNorTheListHaveIt) {
  HealthNode node(NodeHarness::DefaultGates().With(Gate::kResourceHealthStatusMessage, false));
  node.Push(DeviceHealthState::kUnhealthy, "too hot");
  EXPECT_EQ(node.Line(), "Unhealthy - 0");
  EXPECT_EQ(node.Events("DeviceUnhealthy").at(0),
            "device device-c of pool pool of driver gpu.example.com is unhealthy");
}

TEST(DeviceHealth, RowsGoAfterARestartWithTheGateOff) {
  HealthNode node;
  node.Push(DeviceHealthState::kUnhealthy, "hot");
  node.Advance(seconds(2));
  ASSERT_EQ(node.Row(), "claim:c Unhealthy hot");
  const std::string file = *node.files.ReadFile("/var/lib/kubelet/dra_health_state");
  node.KillAgent();
  node.gates = node.gates.With(Gate::kResourceHealthStatus, false);
  node.StartAgent();
  node.Advance(seconds(5));
  EXPECT_EQ(node.Row(), "(none)");
  EXPECT_EQ(*node.files.ReadFile("/var/lib/kubelet/dra_health_state"), file) << "kept for later";
}

TEST(DeviceHealth, EachDriverHasExactlyOneStream) {
  HealthNode node;
  EXPECT_EQ(node.driver.plugin.health_watchers(), 1u);
  node.driver.plugin.EndHealth(Unavailable("restarting"));
  node.Advance(seconds(2));
  EXPECT_EQ(node.driver.plugin.health_watchers(), 1u);
  FakeDriver successor(node, "gpu.example.com", "gpu-2.sock");
  successor.Start();
  EXPECT_EQ(node.driver.plugin.health_watchers(), 0u) << "cancelled on replacement";
  EXPECT_EQ(successor.plugin.health_watchers(), 1u);
  // Its socket goes while the process lives on, as in a rolling update.
  ASSERT_TRUE(node.files.Remove(StrCat(HollowHost::kRegistry, "/gpu.sock")).ok());
  node.watcher.Emit(HollowHost::kRegistry, FileChange::kRemoved, "gpu.sock");
  node.Advance(seconds(60));
  EXPECT_EQ(node.driver.plugin.health_watchers(), 0u);
  EXPECT_EQ(successor.plugin.health_watchers(), 1u);
}

TEST(DeviceHealth, DevicesAreCountedByDriverAndHealthAsTheyAreNow) {
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
  // The pod fails after ten seconds. Its health is reported for longer than that.
  FailingPod() {
    RunFor(seconds(10), 1);
    CreatePodWithClaim();
    Push(DeviceHealthState::kHealthy);
  }
  void Push(DeviceHealthState state, std::string message = "") {
    driver.plugin.PushHealth(Report("device-c", state, std::move(message), 600));
  }
};

TEST(DeviceHealth, AFailedPodKeepsItsRowsWithTheirMessage) {
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

TEST(DeviceHealth, EveryDeviceOfAClaimHasARowInEveryPodThatSharesIt) {
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

TEST(DeviceHealth, AFailedPodHasTheHealthOfTheMomentItsClaimsWereUnprepared) {
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

TEST(DeviceHealth, RowsSurviveAnAgentThatDiesBetweenUnprepareAndTheFinalStatus) {
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

TEST(DeviceHealth, AFailedPodKeepsRowsOfAClaimThatAnotherPodStillUses) {
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

// Writes that end when the test says so.
class HeldWork final : public BlockingWork {
 public:
  void Run(absl::AnyInvocable<Result<void>()> work,
           absl::AnyInvocable<void(Result<void>)> done) override {
    ++begun;
    held.emplace_back(std::move(work), std::move(done));
  }
  void Release() {
    auto [work, done] = std::move(held.at(0));
    held.clear();
    done(work());
  }
  int begun = 0;
  std::vector<std::pair<absl::AnyInvocable<Result<void>()>, absl::AnyInvocable<void(Result<void>)>>>
      held;
};

// A driver that says what the test lets it say.
class SpokenClient final : public rpc::DraPluginClient {
 public:
  bool IsConnected() const override { return true; }
  void Prepare(const std::vector<rpc::ClaimReference>&, Duration, rpc::PrepareDone) override {}
  void AnnouncePrepare(const std::vector<rpc::AnnouncedClaim>&, Duration) override {}
  void Unprepare(const std::vector<rpc::ClaimReference>&, Duration, rpc::UnprepareDone) override {}
  std::unique_ptr<rpc::HealthStream> WatchHealth(rpc::HealthService,
                                                 rpc::HealthStreamCallbacks callbacks) override {
    stream = std::move(callbacks);
    return nullptr;
  }
  rpc::HealthStreamCallbacks stream;
};

TEST(DeviceHealth, TheCacheIsWrittenAtMostOnceASecondAndNeverTwiceAtOnce) {
  SeededLoop loop;
  MemoryFileSystem files;
  HeldWork work;
  const FeatureGates gates{};
  const ClaimCache claims{};
  HealthMonitor monitor({.loop = loop,
                         .files = files,
                         .work = work,
                         .gates = gates,
                         .claims = claims,
                         .directory = "/",
                         .on_changed = [](const auto&) {}});
  auto plugin = std::make_shared<PluginInstance>();
  plugin->driver = "d";
  plugin->health_services = {rpc::HealthService::kV1};
  auto client = std::make_unique<SpokenClient>();
  SpokenClient& driver = *client;
  plugin->client = std::move(client);
  monitor.Add(plugin);
  loop.RunUntilIdle();
  // Twenty times a second.
  auto speak = [&](int times) {
    for (int i = 0; i < times; ++i) {
      driver.stream.on_report(
          Report("a", i % 2 == 0 ? DeviceHealthState::kHealthy : DeviceHealthState::kUnhealthy));
      loop.Advance(milliseconds(50));
      EXPECT_LE(work.held.size(), 1u);
    }
  };
  speak(60);
  EXPECT_EQ(work.begun, 1) << "the first has not ended";
  work.Release();
  EXPECT_TRUE(files.Exists("/dra_health_state"));
  int writes = 1;
  for (int second = 0; second < 10; ++second) {
    speak(20);
    EXPECT_LE(work.begun - writes, 1);
    writes = work.begun;
    if (!work.held.empty()) work.Release();
  }
  EXPECT_GE(work.begun, 9);
}

}  // namespace
}  // namespace drakkar::node
