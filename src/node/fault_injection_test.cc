#include <gtest/gtest.h>

#include "base/text/text.h"
#include "node/dra/dra_manager.h"
#include "node/node_agent.h"
#include "node/pods/pod_manager.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;

constexpr char kUsesClaim[] =
    R"("restartPolicy":"Never","containers":[{"name":"a","image":"busybox:1","resources":{"claims":[{"name":"c"}]}}])";

void RunFor(NodeHarness& node, seconds time) {
  node.machine.program_of = [time](const ContainerConfig&) { return HollowProgram{.runs_for = time}; };
}

// Each file operation fails once in turn, and the pod runs all the same.
TEST(FaultInjection, RecoversFromEachFailingFileOperation) {
  for (std::size_t call = 0; call < 400; ++call) {
    SCOPED_TRACE(call);
    NodeHarness node;
    RunFor(node, seconds(5));
    node.StartAgent();
    FakeDriver driver(node, "gpu.example.com", "gpu-reg.sock");
    driver.Start();
    node.CreateClaim("c", {"gpu.example.com/dev-0"});
    const std::size_t before = node.files.calls();
    driver.plugin.prepare_claim = [](const rpc::ClaimReference&) {
      rpc::PreparedDevice device;
      device.pool_name = "pool";
      device.device_name = "device";
      return rpc::PrepareResult{.devices = {device}};
    };
    node.files.FailCall(call);
    node.CreatePod("p", kUsesClaim, {"c"});
    node.Advance(seconds(30));
    EXPECT_EQ(node.Phase("p"), "Succeeded");
    EXPECT_EQ(node.agent->dra().cache().claims().size(), 0u);
    if (node.Phase("p") == "Succeeded") node.DeletePod("p");
    node.Advance(seconds(10));
    EXPECT_EQ(node.Phase("p"), "(gone)");
    EXPECT_EQ(node.agent->pods().workers().size(), 0u);
    if (node.files.calls() - before <= call) break;
    ASSERT_LT(call, 399u) << "the run has more calls than the test tries";
  }
}

// Each call to a driver fails once in turn.
TEST(FaultInjection, RecoversFromEachFailingDriverCall) {
  for (int call = 0; call < 40; ++call) {
    SCOPED_TRACE(call);
    NodeHarness node;
    RunFor(node, seconds(5));
    int calls = 0;
    node.transport.SetCallFault([&](const std::string&, std::string_view) -> std::optional<Error> {
      if (calls++ == call) return Unavailable("rpc error: code = Unavailable desc = lost");
      return std::nullopt;
    });
    node.StartAgent();
    FakeDriver driver(node, "gpu.example.com", "gpu-reg.sock");
    driver.Start();
    node.CreateClaim("c", {"gpu.example.com/dev-0"});
    node.CreatePod("p", kUsesClaim, {"c"});
    node.Advance(seconds(60));
    EXPECT_EQ(node.Phase("p"), "Succeeded");
    EXPECT_EQ(node.history.back(), "unprepare c");
    if (calls <= call) break;
    ASSERT_LT(call, 39) << "the run has more calls than the test tries";
  }
}

// Each call to the API fails once in turn: before it reaches the server, and with its answer lost.
TEST(FaultInjection, RecoversFromEachFailingApiCall) {
  for (const char* how : {"refused", "lost"}) {
    for (int call = 0; call < 200; ++call) {
      SCOPED_TRACE(StrCat(how, " ", call));
      NodeHarness node;
      RunFor(node, seconds(5));
      int calls = 0;
      node.api_fault = [&](const std::string& what) -> std::optional<Error> {
        if (what.ends_with("leases") || what.ends_with("events") || calls++ != call) return std::nullopt;
        return Unavailable(StrCat(how, ": ", what));
      };
      node.StartAgent();
      FakeDriver driver(node, "gpu.example.com", "gpu-reg.sock");
      driver.Start();
      node.Advance(seconds(3));
      node.CreateClaim("c", {"gpu.example.com/dev-0"});
      node.CreatePod("p", kUsesClaim, {"c"});
      node.Advance(seconds(60));
      EXPECT_EQ(node.Phase("p"), "Succeeded");
      EXPECT_EQ(node.Containers("p", "a").size(), 1u) << "doubled";
      EXPECT_EQ(node.agent->dra().cache().claims().size(), 0u);
      node.DeletePod("p");
      node.Advance(seconds(60));
      EXPECT_EQ(node.Phase("p"), "(gone)");
      EXPECT_TRUE(node.machine.sandboxes.empty());
      if (calls <= call) break;
      ASSERT_LT(call, 199) << "the run has more calls than the test tries";
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
    node.CreateClaim("c", {"gpu.example.com/dev-0"});
    node.CreatePod("p", kUsesClaim, {"c"});
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

// The driver dies in each of its calls, before it did anything and with its answer lost.
TEST(FaultInjection, ADriverThatDiesInACallIsAskedAgainWhenItIsBack) {
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
