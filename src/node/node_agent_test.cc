#include "node/node_agent.h"

#include <gtest/gtest.h>

#include "base/text/text.h"
#include "node/dra/dra_manager.h"
#include "node/pods/pod_manager.h"
#include "node/testing/node_harness.h"
#include "rpc/podresources/podresources.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kOneContainer[] =
    R"("restartPolicy":"Never","containers":[{"name":"a","image":"busybox:1"}])";

TEST(NodeAgent, RegistersItsNodeAndRenewsItsLease) {
  NodeHarness node;
  node.StartAgent();
  ASSERT_TRUE(node.started.ok()) << node.started.error().message;
  auto object = node.api.Get("Node", "node-1");
  ASSERT_NE(object, nullptr);
  EXPECT_EQ((*object)["metadata"]["labels"].Entry("kubernetes.io/hostname").str(), "node-1");
  EXPECT_EQ((*object)["status"]["capacity"]["pods"].str(), "110");
  EXPECT_EQ((*object)["status"]["conditions"].at(3)["type"].str(), "Ready");
  EXPECT_EQ((*object)["status"]["conditions"].at(3)["status"].str(), "True");
  auto lease = node.api.Get("Lease", "kube-node-lease/node-1");
  ASSERT_NE(lease, nullptr);
  const std::string first((*lease)["spec"]["renewTime"].str());
  node.Advance(seconds(11));
  lease = node.api.Get("Lease", "kube-node-lease/node-1");
  EXPECT_GT((*lease)["spec"]["renewTime"].str(), first);
}

TEST(NodeAgent, WritesItsNodeOnlyOnChangeAndAsAHeartbeat) {
  NodeHarness node;
  node.StartAgent();
  const auto before = node.api.Get("Node", "node-1")->resource_version();
  node.Advance(seconds(240));
  EXPECT_EQ(node.api.Get("Node", "node-1")->resource_version(), before);
  node.Advance(seconds(120));
  EXPECT_GT(node.api.Get("Node", "node-1")->resource_version(), before);
}

TEST(NodeAgent, RunsAPodWithAClaimToCompletion) {
  GpuNode node;
  ASSERT_EQ(node.driver.plugin.notifications.size(), 1u);
  EXPECT_TRUE(node.driver.plugin.notifications[0].plugin_registered);
  node.RunFor(seconds(5));
  node.CreatePodWithClaim();
  EXPECT_EQ(node.Phase("p"), "Running");
  ASSERT_EQ(node.Containers("p", "a").size(), 1u);
  EXPECT_EQ(EnvironmentOf(*node.Containers("p", "a")[0], "DEVICE_OF_c"),
            node.api.Get("ResourceClaim", "default/c")->uid());
  node.Advance(seconds(1));
  const std::string state = *node.files.ReadFile("/var/lib/kubelet/dra_manager_state");
  EXPECT_THAT(state, HasSubstr("device-c"));
  auto pod = node.Pod("p");
  EXPECT_EQ((*pod)["status"]["podIP"].str(), "10.0.0.1");
  EXPECT_EQ((*pod)["status"]["containerStatuses"].at(0)["ready"].boolean(), true);

  node.Advance(seconds(6));
  EXPECT_EQ(node.Phase("p"), "Succeeded");
  pod = node.Pod("p");
  const auto terminated = (*pod)["status"]["containerStatuses"].at(0)["state"]["terminated"];
  EXPECT_EQ(terminated["exitCode"].integer(-1), 0);
  EXPECT_EQ(terminated["reason"].str(), "Completed");
  EXPECT_THAT(node.history, ElementsAre("prepare c", "unprepare c"));
  EXPECT_EQ(node.agent->dra().cache().claims().size(), 0u);
  EXPECT_THAT(node.metrics.Text(), HasSubstr("kubelet_dra_operations_duration_seconds"));
}

TEST(NodeAgent, DeletesInOrderContainersThenClaimsThenTheObject) {
  GpuNode node;
  node.machine.program_of = [](const ContainerConfig&) {
    return HollowProgram{.stops_within = seconds(3)};
  };
  node.CreatePodWithClaim();
  ASSERT_EQ(node.Phase("p"), "Running");
  node.driver.plugin.unprepare_claim = [&](const rpc::ClaimReference& claim) {
    for (const auto& [id, container] : node.machine.containers) {
      EXPECT_NE(container.status.state, ContainerState::kRunning) << "unprepared while it runs";
    }
    EXPECT_NE(node.Phase("p"), "(gone)");
    node.history.push_back("unprepare " + claim.name);
    return rpc::UnprepareResult();
  };
  node.DeletePod("p");
  EXPECT_EQ(node.Phase("p"), "Running");
  node.Advance(seconds(2));
  EXPECT_THAT(node.history, ElementsAre("prepare c"));
  node.Advance(seconds(2));
  EXPECT_THAT(node.history, ElementsAre("prepare c", "unprepare c"));
  EXPECT_EQ(node.Phase("p"), "(gone)");
  EXPECT_TRUE(node.machine.sandboxes.empty());
  EXPECT_TRUE(node.agent->pods().workers().empty());
}

TEST(NodeAgent, KillsAContainerThatIgnoresTheSignalWhenTheGracePeriodEnds) {
  NodeHarness node;
  node.StartAgent();
  node.machine.program_of = [](const ContainerConfig&) {
    return HollowProgram{.ignores_stop_signal = true};
  };
  node.CreatePod("p", StrCat(kOneContainer, R"(,"terminationGracePeriodSeconds":7)"));
  node.DeletePod("p");
  node.Advance(seconds(6));
  EXPECT_EQ(node.Phase("p"), "Running");
  node.Advance(seconds(2));
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(NodeAgent, RunsInitContainersInOrderThenSidecarsAndContainers) {
  NodeHarness node;
  std::vector<std::string> order;
  node.machine.program_of = [&](const ContainerConfig& config) {
    order.push_back(config.name);
    HollowProgram program;
    if (config.name.starts_with("init")) program.runs_for = seconds(2);
    if (config.name == "main") program.runs_for = seconds(5);
    return program;
  };
  node.StartAgent();
  node.CreatePod("p", R"("restartPolicy":"Never",
    "initContainers":[{"name":"init1","image":"busybox:1"},
                      {"name":"side","image":"busybox:1","restartPolicy":"Always"},
                      {"name":"init2","image":"busybox:1"}],
    "containers":[{"name":"main","image":"busybox:1"}])");
  EXPECT_THAT(order, ElementsAre("init1"));
  EXPECT_EQ(node.Phase("p"), "Pending");
  node.Advance(seconds(2));
  EXPECT_THAT(order, ElementsAre("init1", "side", "init2"));
  node.Advance(seconds(2));
  EXPECT_THAT(order, ElementsAre("init1", "side", "init2", "main"));
  EXPECT_EQ(node.Phase("p"), "Running");
  node.Advance(seconds(6));
  EXPECT_EQ(node.Phase("p"), "Succeeded");
  EXPECT_NE(node.Containers("p", "side")[0]->status.state, ContainerState::kRunning);
}

TEST(NodeAgent, AFailedInitContainerFailsThePodThatIsNeverRestarted) {
  NodeHarness node;
  node.RunFor(seconds(1), 3);
  node.StartAgent();
  node.CreatePod("p",
                 R"("restartPolicy":"Never","initContainers":[{"name":"i","image":"busybox:1"}],
                         "containers":[{"name":"a","image":"busybox:1"}])");
  node.Advance(seconds(2));
  EXPECT_EQ(node.Phase("p"), "Failed");
  EXPECT_TRUE(node.Containers("p", "a").empty());
}

TEST(NodeAgent, RestartsACrashingContainerWithBackoff) {
  NodeHarness node;
  node.RunFor(seconds(1), 1);
  node.StartAgent();
  node.CreatePod("p",
                 R"("restartPolicy":"Always","containers":[{"name":"a","image":"busybox:1"}])");
  auto restarts = [&] {
    return (*node.Pod("p"))["status"]["containerStatuses"].at(0)["restartCount"].integer();
  };
  node.Advance(std::chrono::milliseconds(1100));
  EXPECT_EQ(restarts(), 1) << "the first restart is at once";
  node.Advance(seconds(2));
  EXPECT_EQ(restarts(), 1);
  const auto state = (*node.Pod("p"))["status"]["containerStatuses"].at(0);
  EXPECT_EQ(state["state"]["waiting"]["reason"].str(), "CrashLoopBackOff");
  EXPECT_EQ(state["lastState"]["terminated"]["exitCode"].integer(), 1);
  node.Advance(seconds(10));
  EXPECT_EQ(restarts(), 2);
  node.Advance(seconds(15));
  EXPECT_EQ(restarts(), 2) << "the delay doubles";
  node.Advance(seconds(7));
  EXPECT_EQ(restarts(), 3);
  EXPECT_LE(node.Containers("p", "a").size(), 2u) << "older attempts are removed";
  EXPECT_EQ(node.Phase("p"), "Running");
}

TEST(NodeAgent, OnFailureRestartsOnlyWhatFailed) {
  NodeHarness node;
  node.machine.program_of = [](const ContainerConfig& config) {
    return HollowProgram{.runs_for = seconds(1), .exit_code = config.attempt == 0 ? 1 : 0};
  };
  node.StartAgent();
  node.CreatePod("p",
                 R"("restartPolicy":"OnFailure","containers":[{"name":"a","image":"busybox:1"}])");
  node.Advance(seconds(5));
  EXPECT_EQ(node.Phase("p"), "Succeeded");
  EXPECT_EQ((*node.Pod("p"))["status"]["containerStatuses"].at(0)["restartCount"].integer(), 1);
}

TEST(NodeAgent, SaysHowToImportAMissingImage) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePod("p",
                 R"("containers":[{"name":"a","image":"nothing:1","imagePullPolicy":"Never"}])");
  const auto waiting = (*node.Pod("p"))["status"]["containerStatuses"].at(0)["state"]["waiting"];
  EXPECT_EQ(waiting["reason"].str(), "ErrImageNeverPull");
  EXPECT_THAT(std::string(waiting["message"].str()), HasSubstr("drakkar image import"));
  node.machine.images.push_back({.id = "sha256:2", .names = {"docker.io/library/nothing:1"}});
  node.Advance(seconds(61));
  EXPECT_EQ(node.Phase("p"), "Running");
}

TEST(NodeAgent, AdoptsARunningPodAfterARestart) {
  NodeHarness node;
  node.RunFor(seconds(100));
  node.StartAgent();
  FakeDriver driver(node, "gpu.example.com", "gpu-reg.sock");
  driver.Start();
  node.CreatePodWithClaim();
  ASSERT_EQ(node.Phase("p"), "Running");
  node.Advance(seconds(1));
  node.KillAgent();
  node.Advance(seconds(10));
  node.StartAgent();
  ASSERT_TRUE(node.started.ok());
  EXPECT_EQ(node.Containers("p", "a").size(), 1u);
  EXPECT_EQ(node.machine.sandboxes.size(), 1u);
  EXPECT_THAT(node.history, ElementsAre("prepare c"));
  node.KillAgent();
  node.Advance(seconds(100));
  node.StartAgent();
  node.Advance(seconds(1));
  EXPECT_EQ(node.Phase("p"), "Succeeded") << "it ended while nobody looked";
  EXPECT_THAT(node.history, ElementsAre("prepare c", "unprepare c"));
}

TEST(NodeAgent, SurvivesBeingKilledAfterAnyNumberOfSteps) {
  for (int steps = 0; steps < 200; steps += 1) {
    SCOPED_TRACE(steps);
    NodeHarness node;
    node.RunFor(seconds(5));
    node.StartAgent();
    FakeDriver driver(node, "gpu.example.com", "gpu-reg.sock");
    driver.Start();
    node.CreateClaim("c", {"gpu.example.com/dev-0"});
    // Created and reserved, then bound: the steps are counted from the binding on.
    auto pod = node.api.Create(StrCat(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"node-1",)",
        kUsesClaim, R"(,"resourceClaims":[{"name":"c","resourceClaimName":"c"}]}})"));
    ASSERT_NE(pod, nullptr);
    api::Draft claim(node.api.Get("ResourceClaim", "default/c")->tree());
    claim["status"]["reservedFor"].Append({{"resource", api::Draft("pods")},
                                           {"name", api::Draft("p")},
                                           {"uid", api::Draft(std::string(pod->uid()))}});
    ASSERT_TRUE(node.api.Update("ResourceClaim", "default/c", "status", claim.Freeze()).ok());
    for (int i = 0; i < steps && node.loop.RunOne(); ++i) {
    }
    node.KillAgent();
    node.files.Crash();
    ASSERT_TRUE(node.files.MakeDirectories("/var/lib/kubelet/plugins_registry", 0750).ok());
    node.files.MakeSocket("/var/lib/kubelet/plugins_registry/gpu-reg.sock");
    node.Run();
    node.StartAgent();
    ASSERT_TRUE(node.started.ok()) << node.started.error().message;
    node.Advance(seconds(30));
    EXPECT_EQ(node.Phase("p"), "Succeeded");
    EXPECT_EQ(node.Containers("p", "a").size(), 1u) << "doubled";
    ASSERT_FALSE(node.history.empty());
    EXPECT_EQ(node.history.back(), "unprepare c");
    EXPECT_EQ(node.agent->dra().cache().claims().size(), 0u);
  }
}

TEST(NodeAgent, TakesDownAPodThatWasDeletedByForceMeanwhile) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.KillAgent();
  ASSERT_TRUE(node.api.Delete("Pod", "default/p", {.grace_period_seconds = 0}).ok());
  node.StartAgent();
  node.Advance(seconds(5));
  EXPECT_TRUE(node.machine.sandboxes.empty());
  EXPECT_THAT(node.history, ElementsAre("prepare c", "unprepare c"));
}

TEST(NodeAgent, UnpreparesAtOnceWhatIsLeftOfAPodWithoutAnyContainer) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.KillAgent();
  ASSERT_TRUE(node.api.Delete("Pod", "default/p", {.grace_period_seconds = 0}).ok());
  node.machine.sandboxes.clear();
  node.machine.containers.clear();
  node.StartAgent();
  node.Advance(seconds(5));
  EXPECT_THAT(node.history, ElementsAre("prepare c", "unprepare c"));
  EXPECT_TRUE(node.agent->dra().cache().claims().empty());
}

TEST(NodeAgent, StopsAPodAtItsActiveDeadline) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePod("p", StrCat(kOneContainer, R"(,"activeDeadlineSeconds":20)"));
  node.Advance(seconds(19));
  EXPECT_EQ(node.Phase("p"), "Running");
  node.Advance(seconds(3));
  EXPECT_EQ(node.Phase("p"), "Failed");
  EXPECT_EQ((*node.Pod("p"))["status"]["reason"].str(), "DeadlineExceeded");
}

TEST(NodeAgent, RunsContainersThatAreAddedToARunningPodOnce) {
  NodeHarness node;
  node.machine.program_of = [](const ContainerConfig& config) {
    return config.name == "debug" ? HollowProgram{.runs_for = seconds(5), .exit_code = 4}
                                  : HollowProgram{};
  };
  node.StartAgent();
  node.CreatePod("p", R"("containers":[{"name":"a","image":"busybox:1"}])");
  ASSERT_EQ(node.Phase("p"), "Running");
  api::Draft pod(node.Pod("p")->tree());
  pod["spec"]["ephemeralContainers"].Append({{"name", "debug"},
                                             {"image", "busybox:1"},
                                             {"tty", true},
                                             {"stdin", true},
                                             {"targetContainerName", "a"}});
  ASSERT_TRUE(node.api.Update("Pod", "default/p", "ephemeralcontainers", pod.Freeze()).ok());
  node.Run();
  ASSERT_EQ(node.Containers("p", "debug").size(), 1u);
  const ContainerConfig& config = node.Containers("p", "debug").at(0)->config;
  EXPECT_TRUE(config.tty && config.standard_input);
  EXPECT_EQ(config.process_namespace_of, node.Containers("p", "a").at(0)->status.pid);
  auto state = [&] {
    return (*node.Pod("p"))["status"]["ephemeralContainerStatuses"].at(0)["state"];
  };
  EXPECT_TRUE(state()["running"].has_value());
  node.Advance(seconds(60));
  EXPECT_EQ(state()["terminated"]["exitCode"].integer(), 4);
  EXPECT_EQ(node.Containers("p", "debug").size(), 1u) << "never restarted";
  EXPECT_EQ(node.Phase("p"), "Running") << "its end means nothing to the pod";
  node.DeletePod("p");
  node.Advance(seconds(60));
  EXPECT_EQ(node.Pod("p"), nullptr);
}

TEST(NodeAgent, AClockThatIsSetBackDelaysNothing) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePod("p", R"("containers":[{"name":"a","image":"busybox:1"}])");
  ASSERT_EQ(node.Phase("p"), "Running");
  node.api_fault = [](const std::string& what) -> std::optional<Error> {
    if (what == "update pods/status") return Unavailable("connection closed");
    return std::nullopt;
  };
  node.DeletePod("p");
  node.api_fault = nullptr;
  node.loop.fake_clock().JumpWall(-std::chrono::hours(1));
  node.Advance(seconds(60));
  EXPECT_EQ(node.Pod("p"), nullptr);
}

class NodeAgentResize : public ::testing::Test {
 protected:
  NodeAgentResize() {
    node_.StartAgent();
    node_.CreatePod(
        "p",
        R"("containers":[{"name":"a","image":"busybox:1","resources":{"requests":{"cpu":"100m"},
      "limits":{"cpu":"200m","memory":"64Mi"}}}])");
  }
  Result<void> Resize(const std::string& request, const std::string& limit) {
    api::Draft pod(node_.Pod("p")->tree());
    api::Draft& resources = pod["spec"]["containers"].at(0)["resources"];
    resources["requests"].Entry("cpu") = request;
    resources["limits"].Entry("cpu") = limit;
    auto updated = node_.api.Update("Pod", "default/p", "resize", pod.Freeze());
    node_.Run();
    return updated.ok() ? Result<void>() : Result<void>(*updated.error);
  }
  std::string Condition(const std::string& type) {
    for (api::Value each : (*node_.Pod("p"))["status"]["conditions"].elements()) {
      if (each["type"].str() == type)
        return StrCat(each["status"].str(), " ", each["reason"].str());
    }
    return "";
  }
  api::Value Status() { return (*node_.Pod("p"))["status"]["containerStatuses"].at(0); }

  NodeHarness node_;
};

TEST_F(NodeAgentResize, ChangesLimitsInPlaceAndSaysWhatIsInForce) {
  EXPECT_EQ(Status()["resources"]["limits"].Entry("cpu").str(), "200m");
  EXPECT_EQ(node_.Containers("p", "a").at(0)->config.resources.cpu_quota_us, 20'000);
  ASSERT_TRUE(Resize("150m", "300m").ok());
  ASSERT_EQ(node_.Containers("p", "a").size(), 1u) << "no restart";
  EXPECT_EQ(node_.Containers("p", "a").at(0)->config.resources.cpu_quota_us, 30'000);
  EXPECT_EQ(Status()["resources"]["limits"].Entry("cpu").str(), "300m");
  EXPECT_EQ(Status()["resources"]["limits"].Entry("memory").str(), "64Mi");
  EXPECT_EQ(Status()["allocatedResources"].Entry("cpu").str(), "150m");
  EXPECT_EQ(Condition("PodResizeInProgress"), "");
  EXPECT_EQ(node_.Events("ResizeCompleted").size(), 1u);
}

TEST_F(NodeAgentResize, SaysWhyItIsNotDone) {
  ASSERT_TRUE(Resize("500000", "1000000").ok());
  EXPECT_EQ(Condition("PodResizePending"), "True Infeasible");
  EXPECT_EQ(Status()["resources"]["limits"].Entry("cpu").str(), "200m") << "as it was";
  node_.machine.FailNext("UpdateContainer", Internal("the kernel says no"));
  ASSERT_TRUE(Resize("100m", "250m").ok());
  EXPECT_EQ(Condition("PodResizePending"), "");
  EXPECT_EQ(Condition("PodResizeInProgress"), "True Error");
  node_.Advance(PodWorker::kResizeRetry);
  EXPECT_EQ(Condition("PodResizeInProgress"), "");
  EXPECT_EQ(Status()["resources"]["limits"].Entry("cpu").str(), "250m");
}

TEST(NodeAgent, SaysWhichFieldsItDoesNotActOn) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePod("p", R"("containers":[{"name":"a","image":"busybox:1",
    "securityContext":{"appArmorProfile":{"type":"Unconfined"},
    "seLinuxOptions":{"level":"s0"}}}],"securityContext":{"seccompProfile":{"type":"RuntimeDefault"}})");
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(node.Events("UnsupportedFields").at(0),
            "this node does not act on: "
            "securityContext.seLinuxOptions of container a");
}

TEST(NodeAgent, ProbesSayWhenAContainerIsReadyAndKillOneThatIsStuck) {
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

TEST(NodeAgent, RunsThePreStopHookBeforeTheSignal) {
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

TEST(NodeAgent, RunsThePostStartHookBeforeTheContainerIsReadyAndTheNextOneStarts) {
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

TEST(NodeAgent, AFailedPostStartHookEndsTheContainerWhichIsStartedAgain) {
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

TEST(NodeAgent, AHookThatSleepsHoldsUpTheStartAndGivesWayToTheEnd) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePod("p",
                 R"("terminationGracePeriodSeconds":1,"containers":[{"name":"a","image":"busybox:1",
    "lifecycle":{"postStart":{"sleep":{"seconds":20}}}},{"name":"b","image":"busybox:1"}])");
  node.Advance(seconds(19));
  EXPECT_EQ(node.Containers("p", "b").size(), 0u);
  node.Advance(seconds(2));
  EXPECT_EQ(node.Containers("p", "b").size(), 1u);
  node.CreatePod("q",
                 R"("terminationGracePeriodSeconds":1,"containers":[{"name":"a","image":"busybox:1",
    "lifecycle":{"postStart":{"sleep":{"seconds":2000}}}}])");
  node.DeletePod("q");
  node.Advance(seconds(5));
  EXPECT_EQ(node.Phase("q"), "(gone)");
}

TEST(NodeAgent, HostAliasesAreInTheHostsFileOfEachContainer) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePod("p", R"("hostAliases":[{"ip":"10.1.2.3","hostnames":["db","db.local"]}],
    "containers":[{"name":"a","image":"busybox:1"}])");
  ASSERT_EQ(node.Containers("p", "a").size(), 1u);
  std::string file;
  for (const Mount& mount : node.Containers("p", "a")[0]->config.mounts) {
    if (mount.container_path == "/etc/hosts") file = mount.host_path;
  }
  ASSERT_FALSE(file.empty());
  const std::string text = *node.files.ReadFile(file);
  EXPECT_THAT(text, HasSubstr("127.0.0.1\tlocalhost\n"));
  EXPECT_THAT(text, HasSubstr("10.0.0.1\tp\n"));
  EXPECT_TRUE(text.ends_with("\n# Entries added by HostAliases.\n10.1.2.3\tdb\tdb.local\n"))
      << text;
  EXPECT_TRUE(node.Events("UnsupportedFields").empty());
}

TEST(NodeAgent, VolumesFollowTheirConfigMapWithinAMinute) {
  NodeHarness node;
  node.api.Create(
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s","namespace":"default"},
    "data":{"k":"v","old":"x"}})");
  node.StartAgent();
  node.CreatePod("p", R"("volumes":[{"name":"c","configMap":{"name":"s"}}],
    "containers":[{"name":"a","image":"busybox:1","volumeMounts":[{"name":"c","mountPath":"/c"}]}])");
  ASSERT_EQ(node.Phase("p"), "Running");
  const std::string directory =
      StrCat("/var/lib/kubelet/pods/", node.Pod("p")->uid(), "/volumes/kubernetes.io~configmap/c");
  EXPECT_EQ(*node.files.ReadFile(directory + "/k"), "v");
  api::Draft changed(node.api.Get("ConfigMap", "default/s")->tree());
  changed["data"].Entry("k") = "w";
  changed["data"].RemoveEntry("old");
  ASSERT_TRUE(node.api.Update("ConfigMap", "default/s", "", changed.Freeze()).ok());
  node.Advance(seconds(61));
  EXPECT_EQ(*node.files.ReadFile(directory + "/k"), "w");
  EXPECT_FALSE(node.files.Exists(directory + "/old"));
  EXPECT_EQ(node.Containers("p", "a").size(), 1u);
}

// Volumes that have the size the test says.
class SizedVolumes final : public VolumeHost {
 public:
  explicit SizedVolumes(FileSystem& files) : plain_(MakePlainVolumeHost(files)) {}
  Result<void> MountMemory(const std::string& path, std::uint64_t size_bytes,
                           std::optional<std::uint32_t>) override {
    memory[path] = size_bytes;
    return Ok();
  }
  Result<void> SetGroup(const std::string&, std::uint32_t) override { return Ok(); }
  Result<std::string> BindInside(const std::string& volume, const std::string& sub_path,
                                 const std::string& target) override {
    return plain_->BindInside(volume, sub_path, target);
  }
  Result<void> UnmountBelow(const std::string& path) override {
    unmounted.push_back(path);
    return Ok();
  }
  Result<std::uint64_t> Usage(const std::string&) override { return used_bytes; }

  std::uint64_t used_bytes = 0;
  std::map<std::string, std::uint64_t> memory;  // by path, its size
  std::vector<std::string> unmounted;

 private:
  std::unique_ptr<VolumeHost> plain_;
};

TEST(NodeAgent, APodIsEvictedWhenAVolumeOutgrowsItsLimit) {
  NodeHarness node;
  SizedVolumes volumes(node.files);
  node.volume_host = &volumes;
  node.StartAgent();
  node.CreatePod("p", R"("volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Mi"}}],
    "terminationGracePeriodSeconds":600,
    "containers":[{"name":"a","image":"busybox:1","volumeMounts":[{"name":"v","mountPath":"/v"}]}])");
  ASSERT_EQ(node.Phase("p"), "Running");
  volumes.used_bytes = 1 << 20;
  node.Advance(seconds(30));
  EXPECT_EQ(node.Phase("p"), "Running") << "as much as it may have";
  volumes.used_bytes = (1 << 20) + 1;
  node.Advance(seconds(12));
  const auto pod = node.Pod("p");
  EXPECT_EQ((*pod)["status"]["phase"].str(), "Failed");
  EXPECT_EQ((*pod)["status"]["reason"].str(), "Evicted");
  EXPECT_EQ((*pod)["status"]["message"].str(),
            "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". ");
  EXPECT_EQ(node.Events("Evicted").size(), 1u);
}

TEST(NodeAgent, VolumesInMemoryAreNoLargerThanTheirPodAndGoWithItsEnd) {
  NodeHarness node;
  SizedVolumes volumes(node.files);
  node.volume_host = &volumes;
  node.StartAgent();
  node.RunFor(seconds(5));
  node.CreatePod("p", R"("restartPolicy":"Never","volumes":[
      {"name":"small","emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}},
      {"name":"large","emptyDir":{"medium":"Memory","sizeLimit":"1Ti"}}],
    "containers":[{"name":"a","image":"busybox:1","resources":{"limits":{"memory":"64Mi"}}}])");
  const std::string directory = StrCat("/var/lib/kubelet/pods/", node.Pod("p")->uid());
  const std::string prefix = directory + "/volumes/kubernetes.io~empty-dir/";
  EXPECT_EQ(volumes.memory[prefix + "small"], 1u << 20);
  EXPECT_EQ(volumes.memory[prefix + "large"], 64u << 20);
  EXPECT_TRUE(volumes.unmounted.empty());
  node.Advance(seconds(6));
  EXPECT_EQ(node.Phase("p"), "Succeeded");
  EXPECT_EQ(volumes.unmounted, (std::vector<std::string>{directory})) << "though the pod is there";
  EXPECT_FALSE(node.files.Exists(prefix + "small"));
}

TEST(NodeAgent, PodsWhoseIsolationTheNodeCannotGiveAreRefused) {
  struct Case {
    const char* name;
    const char* fields;
    const char* reason;
    const char* message;
  };
  const Case cases[] = {
      {"runtime-class", R"("runtimeClassName":"gvisor",)", "RuntimeClassUnsupported",
       "no handler for RuntimeClass \"gvisor\""},
      {"users", R"("hostUsers":false,)", "UserNamespacesUnsupported", "user namespace"},
      {"apparmor", R"("securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}},)",
       "AppArmor", "Cannot enforce AppArmor"}};
  NodeHarness node;
  node.StartAgent();
  node.api.Create(R"({"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass",
    "metadata":{"name":"gvisor"},"handler":"runsc"})");
  for (const Case& each : cases) {
    node.CreatePod(each.name,
                   StrCat(each.fields, R"("containers":[{"name":"a","image":"busybox:1"}])"));
    const auto pod = node.Pod(each.name);
    ASSERT_NE(pod, nullptr) << each.name;
    EXPECT_EQ((*pod)["status"]["phase"].str(), "Failed") << each.name;
    EXPECT_EQ((*pod)["status"]["reason"].str(), each.reason);
    EXPECT_THAT((*pod)["status"]["message"].str(), HasSubstr(each.message));
    EXPECT_EQ(node.Events(each.reason).size(), 1u) << each.name;
    EXPECT_TRUE(node.Containers(each.name, "a").empty()) << each.name;
  }
}

TEST(NodeAgent, OnlyTheContainerWhoseVariablesDoubleFails) {
  NodeHarness node;
  node.StartAgent();
  std::string variables = R"({"name":"V0","value":"x"})";
  for (int i = 1; i < 40; ++i) {
    const std::string before = StrCat("$(V", i - 1, ")");
    variables += StrCat(R"(,{"name":"V)", i, R"(","value":")", before, before, "\"}");
  }
  node.CreatePod("p", StrCat(R"("containers":[{"name":"good","image":"busybox:1"},
    {"name":"bad","image":"busybox:1","env":[)",
                             variables, "]}]"));
  node.Advance(seconds(2));
  EXPECT_EQ(node.Containers("p", "good").size(), 1u);
  EXPECT_TRUE(node.Containers("p", "bad").empty());
  const auto pod = node.Pod("p");
  bool found = false;
  for (api::Value status : (*pod)["status"]["containerStatuses"].elements()) {
    if (status["name"].str() != "bad") continue;
    found = true;
    EXPECT_EQ(status["state"]["waiting"]["reason"].str(), "CreateContainerConfigError");
    EXPECT_THAT(status["state"]["waiting"]["message"].str(), HasSubstr("more than"));
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace drakkar::node
