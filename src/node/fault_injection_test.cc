#include <gtest/gtest.h>

#include "base/text/text.h"
#include "node/dra/dra_manager.h"
#include "node/node_agent.h"
#include "node/pods/pod_manager.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;

constexpr char kSettings[] =
    R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"default"},"data":{"k":"v"}})";

// Has all kinds of file volumes and a termination message.
constexpr char kUsesEverything[] =
    R"("restartPolicy":"Never","terminationGracePeriodSeconds":1,"volumes":[{"name":"empty","emptyDir":{}},
    {"name":"config","configMap":{"name":"settings"}},
    {"name":"facts","downwardAPI":{"items":[{"path":"name","fieldRef":{"fieldPath":"metadata.name"}}]}}],
    "containers":[{"name":"a","image":"busybox:1","terminationMessagePath":"/dev/termination-log",
    "volumeMounts":[{"name":"empty","mountPath":"/e"},{"name":"config","mountPath":"/c"},{"name":"facts","mountPath":"/f"}],
    "resources":{"claims":[{"name":"c"}]}}])";

rpc::HealthReport Report(rpc::DeviceHealthState state) {
  return {{.pool_name = "pool", .device_name = "device-c", .health = state}};
}

std::string HealthOf(NodeHarness& node, const std::string& pod) {
  const auto object = node.Pod(pod);
  if (object == nullptr) return "(gone)";
  const auto row = (*object)["status"]["containerStatuses"].at(0)["allocatedResourcesStatus"].at(0);
  return std::string(row["resources"].at(0)["health"].str("(none)"));
}

// Acts as a supervisor that restarts an agent that failed to start.
void StartSupervised(NodeHarness& node) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    node.StartAgent();
    if (node.started.ok()) return;
    node.KillAgent();
  }
  FAIL() << node.started.error().message;
}

// Everything a node does with files, a driver and the API: it starts, a driver with health and CDI
// files registers, a pod with volumes runs, the agent is restarted and reads its files, the device
// becomes unhealthy, the pod is deleted. One failure on the way must not change the outcome.
void LiveThrough(NodeHarness& node) {
  StartSupervised(node);
  FakeDriver driver(node, "gpu.example.com", "gpu-reg.sock");
  driver.Start();
  driver.plugin.PushHealth(Report(rpc::DeviceHealthState::kHealthy));
  node.CreateClaim("c", {"gpu.example.com/dev-0"});
  node.CreatePod("p", kUsesEverything, {"c"});
  node.Advance(seconds(20));
  driver.plugin.PushHealth(Report(rpc::DeviceHealthState::kHealthy));
  node.Advance(seconds(3));
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(HealthOf(node, "p"), "Healthy");
  node.KillAgent();
  StartSupervised(node);
  driver.plugin.PushHealth(Report(rpc::DeviceHealthState::kUnhealthy));
  node.Advance(seconds(15));
  EXPECT_EQ(HealthOf(node, "p"), "Unhealthy");
  EXPECT_EQ(node.Containers("p", "a").size(), 1u) << "doubled, or lost over the restart";
  node.DeletePod("p");
  node.Advance(seconds(60));
  EXPECT_EQ(node.Phase("p"), "(gone)");
  EXPECT_EQ(node.history.back(), "unprepare c");
  EXPECT_EQ(node.agent->dra().cache().claims().size(), 0u);
  EXPECT_EQ(node.agent->pods().workers().size(), 0u);
  EXPECT_TRUE(node.machine.sandboxes.empty());
  const auto left = node.files.ListDirectory("/var/lib/kubelet/pods");
  EXPECT_TRUE(!left.ok() || left->empty()) << "files are left: " << left->front();
}

// Covers checkpoint, health cache, CDI files, pod directories and volumes, and the plugin registry.
TEST(FaultInjection, RecoversFromEachFailingFileOperation) {
  for (std::size_t call = 0;; ++call) {
    SCOPED_TRACE(call);
    NodeHarness node;
    node.api.Create(kSettings);
    const std::size_t before = node.files.calls();
    node.files.FailCall(call);
    LiveThrough(node);
    if (HasFailure() || node.files.calls() - before <= call) break;
    ASSERT_LT(call, 1'000u) << "the run has more calls than the test tries";
  }
}

// Covers registration, prepare, unprepare and the health stream.
TEST(FaultInjection, RecoversFromEachFailingDriverCall) {
  for (int call = 0;; ++call) {
    SCOPED_TRACE(call);
    NodeHarness node;
    node.api.Create(kSettings);
    int calls = 0;
    node.transport.SetCallFault([&](const std::string&, std::string_view) -> std::optional<Error> {
      if (calls++ == call) return Unavailable("rpc error: code = Unavailable desc = lost");
      return std::nullopt;
    });
    LiveThrough(node);
    if (HasFailure() || calls <= call) break;
    ASSERT_LT(call, 100) << "the run has more calls than the test tries";
  }
}

// The call takes effect, but its answer is lost.
TEST(FaultInjection, RecoversFromEachLostDriverAnswer) {
  for (int call = 0;; ++call) {
    SCOPED_TRACE(call);
    NodeHarness node;
    node.api.Create(kSettings);
    int calls = 0;
    node.transport.SetAnswerFault(
        [&](const std::string&, std::string_view) -> std::optional<Error> {
          if (calls++ == call) return Unavailable("rpc error: code = Unavailable desc = lost");
          return std::nullopt;
        });
    LiveThrough(node);
    if (HasFailure()) break;
    if (calls <= call) {
      EXPECT_GE(call, 6) << "registering twice, preparing and unpreparing";
      break;
    }
    ASSERT_LT(call, 100) << "the run has more calls than the test tries";
  }
}

// Fails either before the call reaches the server or by losing its answer.
TEST(FaultInjection, RecoversFromEachFailingApiCall) {
  for (const char* how : {"refused", "lost"}) {
    for (int call = 0;; ++call) {
      SCOPED_TRACE(StrCat(how, " ", call));
      NodeHarness node;
      node.api.Create(kSettings);
      int calls = 0;
      std::string failed;
      node.api_fault = [&](const std::string& what) -> std::optional<Error> {
        if (calls++ != call) return std::nullopt;
        failed = what;
        return Unavailable(StrCat(how, ": ", what));
      };
      LiveThrough(node);
      if (HasFailure()) ADD_FAILURE() << failed;
      if (HasFailure() || calls <= call) break;
      ASSERT_LT(call, 400) << "the run has more calls than the test tries";
    }
  }
}

// Each call to the runtime fails once in turn.
TEST(FaultInjection, RecoversFromEachFailingRuntimeCall) {
  for (const char* method : {"RunPodSandbox", "CreateContainer", "StartContainer", "StopContainer",
                             "StopPodSandbox", "RemovePodSandbox", "RemoveContainer"}) {
    SCOPED_TRACE(method);
    NodeHarness node;
    node.StartAgent();
    FakeDriver driver(node, "gpu.example.com", "gpu-reg.sock");
    driver.Start();
    node.machine.FailNext(method, Internal("it broke"));
    node.CreatePodWithClaim();
    node.Advance(seconds(30));
    EXPECT_EQ(node.Phase("p"), "Running");
    node.DeletePod("p");
    node.Advance(seconds(120));
    EXPECT_EQ(node.Phase("p"), "(gone)");
    EXPECT_TRUE(node.machine.sandboxes.empty());
    EXPECT_EQ(node.history.back(), "unprepare c");
    EXPECT_EQ(node.agent->dra().cache().claims().size(), 0u);
  }
}

// The driver dies during each call, before it has done anything and with its answer lost.
TEST(FaultInjection, ACallThatADriverDidNotSurviveIsRetriedWhenItReturns) {
  for (const bool unprepare : {false, true}) {
    SCOPED_TRACE(unprepare);
    NodeHarness node;
    node.StartAgent();
    FakeDriver driver(node, "gpu.example.com", "gpu-reg.sock");
    driver.Start();
    node.CreateClaim("c", {"gpu.example.com/dev-0"});
    driver.plugin.hold_calls = !unprepare;
    node.CreatePod("p", kUsesClaim, {"c"});
    if (unprepare) {
      driver.plugin.hold_calls = true;
      node.DeletePod("p");
      node.Advance(std::chrono::milliseconds(10));
    }
    ASSERT_EQ(driver.plugin.held_calls(), 1u);
    driver.Stop();
    driver.plugin.DropCalls();
    driver.plugin.hold_calls = false;
    node.Advance(seconds(20));
    driver.Start();
    if (unprepare) {
      EXPECT_EQ(node.Phase("p"), "(gone)");
      EXPECT_EQ(driver.plugin.unprepare_calls.size(), 2u);
    } else {
      EXPECT_EQ(node.Phase("p"), "Running");
      EXPECT_EQ(driver.plugin.prepare_calls.size(), 2u);
    }
  }
}

}  // namespace
}  // namespace drakkar::node
