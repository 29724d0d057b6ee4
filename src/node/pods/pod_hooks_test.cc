// Probes and lifecycle hooks, as pods see them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"
#include "node/dra/dra_manager.h"
#include "node/node_agent.h"
#include "node/pods/pod_manager.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PodHooks, ProbesDetermineReadinessAndKillAStuckContainer) {
  NodeHarness node;
  bool ready = false, alive = true;
  node.machine.program_of = [&](const ContainerConfig&) {
    return HollowProgram{.exec = [&](const std::vector<std::string>& command) {
      const bool good = command.at(0) == "alive" ? alive : ready;
      return ExecResult{.exit_code = good ? 0 : 1, .output = "no"};
    }};
  };
  node.StartAgent();
  node.CreatePod("p", R"("containers":[{"name":"a","image":"busybox:1",
    "readinessProbe":{"exec":{"command":["ready"]},"periodSeconds":1},
    "livenessProbe":{"exec":{"command":["alive"]},"periodSeconds":2,"failureThreshold":2}}])");
  auto status = [&](api::FieldName field) {
    return (*node.Pod("p"))["status"]["containerStatuses"].at(0)[field];
  };
  node.Advance(seconds(2));
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_FALSE(status("ready").boolean());
  ready = true;
  node.Advance(seconds(2));
  EXPECT_TRUE(status("ready").boolean());
  ready = false;
  node.Advance(seconds(4));
  EXPECT_FALSE(status("ready").boolean());
  EXPECT_EQ(status("restartCount").integer(), 0);
  EXPECT_EQ(node.Events("Unhealthy").at(0), "Readiness probe failed: no");
  alive = false;
  node.Advance(seconds(5));
  EXPECT_EQ(status("restartCount").integer(), 1);
}

TEST(PodHooks, RunsThePreStopHookBeforeTheSignal) {
  NodeHarness node;
  std::vector<std::string> hooks;
  node.machine.program_of = [&](const ContainerConfig&) {
    return HollowProgram{.exec = [&](const std::vector<std::string>& command) {
      for (const auto& [id, container] : node.machine.containers) {
        EXPECT_EQ(container.status.state, ContainerState::kRunning);
      }
      hooks.push_back(command.at(0));
      return ExecResult{};
    }};
  };
  node.StartAgent();
  node.CreatePod("p", R"("containers":[{"name":"a","image":"busybox:1",
    "lifecycle":{"preStop":{"exec":{"command":["bye"]}}}}])");
  node.DeletePod("p");
  node.Advance(seconds(1));
  EXPECT_THAT(hooks, ElementsAre("bye"));
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(PodHooks, RunsThePostStartHookBeforeTheContainerIsReadyAndTheNextOneStarts) {
  NodeHarness node;
  std::vector<std::string> seen;
  node.machine.program_of = [&](const ContainerConfig& config) {
    seen.push_back("start " + config.name);
    return HollowProgram{.exec = [&](const std::vector<std::string>& command) {
      seen.push_back(command.at(0));
      const auto pod = node.Pod("p");
      EXPECT_FALSE(pod != nullptr &&
                   (*pod)["status"]["containerStatuses"].at(0)["ready"].boolean());
      return ExecResult{};
    }};
  };
  node.StartAgent();
  node.CreatePod("p", R"("containers":[{"name":"a","image":"busybox:1",
    "lifecycle":{"postStart":{"exec":{"command":["hello"]}}}},{"name":"b","image":"busybox:1"}])");
  node.Advance(seconds(1));
  EXPECT_THAT(seen, ElementsAre("start a", "hello", "start b"));
  EXPECT_TRUE((*node.Pod("p"))["status"]["containerStatuses"].at(0)["ready"].boolean());
  EXPECT_TRUE(node.Events("UnsupportedFields").empty());
}

TEST(PodHooks, AFailedPostStartHookRestartsTheContainer) {
  NodeHarness node;
  int runs = 0;
  node.machine.program_of = [&](const ContainerConfig&) {
    return HollowProgram{.exec = [&](const std::vector<std::string>&) {
      return ExecResult{.exit_code = ++runs == 1 ? 3 : 0, .error_output = "no"};
    }};
  };
  node.StartAgent();
  node.CreatePod("p", R"("containers":[{"name":"a","image":"busybox:1",
    "lifecycle":{"postStart":{"exec":{"command":["hello"]}}}}])");
  node.Advance(seconds(60));
  EXPECT_EQ(runs, 2);
  EXPECT_THAT(node.Events("FailedPostStartHook"),
              ElementsAre("PostStartHook failed: exit code 3: no"));
  EXPECT_EQ(node.Containers("p", "a").size(), 2u);
  EXPECT_TRUE((*node.Pod("p"))["status"]["containerStatuses"].at(0)["ready"].boolean());
}

TEST(PodHooks, ASleepHookDelaysTheNextContainerAndEndsWithThePod) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePod(
      "p",
      R"("terminationGracePeriodSeconds":20,"containers":[{"name":"a","image":"busybox:1",
    "lifecycle":{"postStart":{"sleep":{"seconds":20}}}},{"name":"b","image":"busybox:1"}])");
  node.Advance(seconds(19));
  EXPECT_EQ(node.Containers("p", "b").size(), 0u);
  node.Advance(seconds(2));
  EXPECT_EQ(node.Containers("p", "b").size(), 1u);
  node.CreatePod(
      "q",
      R"("terminationGracePeriodSeconds":2000,"containers":[{"name":"a","image":"busybox:1",
    "lifecycle":{"postStart":{"sleep":{"seconds":2000}}}}])");
  ASSERT_TRUE(node.api.Delete("Pod", "default/q", {.grace_period_seconds = std::int64_t{1}}).ok());
  node.Advance(seconds(5));
  EXPECT_EQ(node.Phase("q"), "(gone)");
}

}  // namespace
}  // namespace drakkar::node
