// Health streams of drivers: which instance is used, whose report counts, what is logged.
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

TEST(HealthStream, TheEndOfTheStreamClearsHealthAndAReconnectRestoresIt) {
  HealthNode node;
  node.Push(DeviceHealthState::kHealthy);
  node.driver.plugin.EndHealth(Ok());
  node.Run();
  EXPECT_EQ(node.Row(), "claim:c Unknown ");
  node.Advance(seconds(2));
  EXPECT_EQ(node.Row(), "claim:c Healthy ") << "the latest report comes with the new stream";
}

TEST(HealthStream, APluginWithoutAHealthServiceRegistersAndIsUnknown) {
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

TEST(HealthStream, WithTheGateOffThereIsNoStreamAndNoRow) {
  HealthNode node(NodeHarness::DefaultGates().With(Gate::kResourceHealthStatus, false));
  EXPECT_EQ(node.driver.plugin.health_watchers(), 0u);
  EXPECT_EQ(node.Row(), "(none)");
}

TEST(HealthStream, TheEndOfTheOldInstanceDoesNotClearTheNewOne) {
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

TEST(HealthStream, AnOldInstanceCannotOverruleItsSuccessor) {
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

TEST(HealthStream, OldReportsExpireUnlessTheSuccessorConfirmsThem) {
  HealthNode node;
  node.Push(DeviceHealthState::kHealthy);
  FakeDriver successor(node, "gpu.example.com", "gpu-2.sock");
  successor.Start();
  node.Advance(seconds(31));
  EXPECT_EQ(node.Row(), "claim:c Unknown ");
}

TEST(HealthStream, ASuccessorWithoutAHealthServiceMakesDevicesUnknown) {
  HealthNode node;
  node.Push(DeviceHealthState::kHealthy);
  FakeDriver successor(node, "gpu.example.com", "gpu-2.sock");
  successor.plugin.health_supported = false;
  successor.Start();
  EXPECT_EQ(node.Row(), "claim:c Unknown ");
}

TEST(HealthStream, AfterAFailedUpdateTheOldInstanceIsUsedAgain) {
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

TEST(HealthStream, AMessageDisappearsWithItsReport) {
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

TEST(HealthStream, TheEndOfAStreamIsLoggedWithItsReason) {
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

TEST(HealthStream, ADriverWithoutHealthIsLoggedOnce) {
  NodeHarness node;
  FakeDriver driver(node, "gpu.example.com", "gpu.sock");
  driver.plugin.health_supported = false;
  LoggedLines log;
  node.StartAgent();
  driver.Start();
  node.Advance(seconds(120));
  EXPECT_EQ(log.Count("driver does not support device health"), 1u);
}

TEST(HealthStream, ADeregisteredInstanceIsLogged) {
  HealthNode node;
  LoggedLines log;
  ASSERT_TRUE(node.files.Remove(StrCat(HollowHost::kRegistry, "/gpu.sock")).ok());
  node.watcher.Emit(HollowHost::kRegistry, FileChange::kRemoved, "gpu.sock");
  node.Run();
  EXPECT_EQ(log.Count("health stream cancelled: the driver was deregistered"), 1u);
}

TEST(HealthStream, AStreamThatKeepsFailingIsLoggedOnce) {
  HealthNode node;
  node.Push(DeviceHealthState::kHealthy);
  LoggedLines log;
  node.driver.Kill();
  node.Advance(seconds(300));
  EXPECT_EQ(log.Count("health stream failed"), 1u);
}

TEST(HealthStream, DeregistrationClearsOnlyTheInstancesOwnReports) {
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

TEST(HealthStream, APluginThatAdvertisesNoHealthServiceIsStillTried) {
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

TEST(HealthStream, TheNextProcessOfADriverIsTriedWithTheNewestServiceFirst) {
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

TEST(HealthStream, EachDriverHasExactlyOneStream) {
  HealthNode node;
  EXPECT_EQ(node.driver.plugin.health_watchers(), 1u);
  node.driver.plugin.EndHealth(Unavailable("restarting"));
  node.Advance(seconds(2));
  EXPECT_EQ(node.driver.plugin.health_watchers(), 1u);
  FakeDriver successor(node, "gpu.example.com", "gpu-2.sock");
  successor.Start();
  EXPECT_EQ(node.driver.plugin.health_watchers(), 0u) << "cancelled on replacement";
  EXPECT_EQ(successor.plugin.health_watchers(), 1u);
  // Its socket is removed while the process keeps running, as in a rolling update.
  ASSERT_TRUE(node.files.Remove(StrCat(HollowHost::kRegistry, "/gpu.sock")).ok());
  node.watcher.Emit(HollowHost::kRegistry, FileChange::kRemoved, "gpu.sock");
  node.Advance(seconds(60));
  EXPECT_EQ(node.driver.plugin.health_watchers(), 0u);
  EXPECT_EQ(successor.plugin.health_watchers(), 1u);
}

}  // namespace
}  // namespace drakkar::node
