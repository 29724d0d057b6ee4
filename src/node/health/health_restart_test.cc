// What a restarted agent still knows about device health.
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

TEST(HealthRestart, SurvivesAnAgentRestartUntilItsTimeout) {
  HealthNode node;
  node.Push(DeviceHealthState::kUnhealthy, "hot");
  node.Advance(seconds(2));
  node.KillAgent();
  node.driver.plugin.health_supported = false;  // the report is not repeated
  node.StartAgent();
  EXPECT_EQ(node.Row(), "claim:c Unhealthy hot");
  node.Advance(seconds(31));
  EXPECT_EQ(node.Row(), "claim:c Unknown ");
}

TEST(HealthRestart, ACorruptCacheIsTreatedAsEmptyAndTheGateOffKeepsTheFile) {
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

TEST(HealthRestart, RestartingWithTheGateOffRemovesTheRows) {
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

// Holds writes until the test releases them.
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

// A driver whose reports the test controls.
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

TEST(HealthRestart, TheCacheIsWrittenAtMostOnceASecondAndNeverConcurrently) {
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
