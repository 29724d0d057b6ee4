#include "node/node_agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/writer.h"
#include "base/text/text.h"
#include "node/dra/dra_manager.h"
#include "node/node_agent.h"
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

TEST(NodeStatus, ListsTheLargestImagesByDigestAndName) {
  NodeHarness node;
  node.registration.max_images = 2;
  node.machine.images = {
      {.id = "sha256:1", .names = {"docker.io/library/small:1"}, .size_bytes = 1},
      {.id = "sha256:2",
       .names = {"docker.io/library/big:1", "docker.io/library/big@sha256:7"},
       .digests = {"docker.io/library/big@sha256:7"},
       .size_bytes = 300},
      {.id = "sha256:3", .names = {"docker.io/library/middle:1"}, .size_bytes = 20}};
  node.StartAgent();
  const auto object = node.api.Get("Node", "node-1");
  EXPECT_EQ(api::WriteJson((*object)["status"]["images"], {.sort_members = true}),
            R"([{"names":["docker.io/library/big@sha256:7","docker.io/library/big:1"],)"
            R"("sizeBytes":300},{"names":["docker.io/library/middle:1"],"sizeBytes":20}])");
  node.machine.images.clear();
  node.Advance(std::chrono::seconds(11));
  EXPECT_FALSE((*node.api.Get("Node", "node-1"))["status"]["images"].has_value());
}

TEST(NodeAgent, UpdatesItsNodeOnlyOnChangeAndAsAHeartbeat) {
  NodeHarness node;
  node.StartAgent();
  const auto before = node.api.Get("Node", "node-1")->resource_version();
  node.Advance(seconds(240));
  EXPECT_EQ(node.api.Get("Node", "node-1")->resource_version(), before);
  node.Advance(seconds(120));
  EXPECT_GT(node.api.Get("Node", "node-1")->resource_version(), before);
}

TEST(NodeAgent, RegistersAsItsSettingsSay) {
  NodeHarness node;
  node.registration = {.status_every = seconds(2),
                       .heartbeat_every = seconds(30),
                       .lease_seconds = 20,
                       .taints = {{"a", "b", "NoSchedule"}, {"c", "", "NoExecute"}},
                       .provider_id = "cloud://7"};
  node.StartAgent();
  const auto object = node.api.Get("Node", "node-1");
  const api::Value spec = (*object)["spec"];
  EXPECT_EQ(spec["providerID"].str(), "cloud://7");
  ASSERT_EQ(spec["taints"].size(), 2u);
  EXPECT_EQ(spec["taints"].at(0)["value"].str(), "b");
  EXPECT_EQ(spec["taints"].at(1)["effect"].str(), "NoExecute");
  const auto lease = [&] { return node.api.Get("Lease", "kube-node-lease/node-1"); };
  EXPECT_EQ((*lease())["spec"]["leaseDurationSeconds"].integer(), 20);
  const std::string renewed((*lease())["spec"]["renewTime"].str());
  node.Advance(std::chrono::milliseconds(5'100));
  EXPECT_GT((*lease())["spec"]["renewTime"].str(), renewed);
  const auto version = node.api.Get("Node", "node-1")->resource_version();
  node.Advance(seconds(31));
  EXPECT_GT(node.api.Get("Node", "node-1")->resource_version(), version) << "a heartbeat";
}

TEST(NodeAgent, WaitsForItsNodeIfItMustNotCreateIt) {
  NodeHarness node;
  node.registration.creates_node = false;
  node.StartAgent();
  node.Advance(seconds(30));
  EXPECT_EQ(node.api.Get("Node", "node-1"), nullptr);
  node.api.Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"node-1"}})");
  node.Advance(seconds(2));
  EXPECT_EQ((*node.api.Get("Node", "node-1"))["status"]["capacity"]["pods"].str(), "110");
}

TEST(NodeAgent, LogsAreRotatedAndCrashesDelayedAsTheSettingsSay) {
  NodeHarness node;
  node.logs = {.max_bytes = 100, .max_files = 2, .check_every = seconds(3)};
  node.longest_crash_backoff = seconds(4);
  node.StartAgent();
  node.CreatePod("p", R"("containers":[{"name":"a","image":"busybox:1"}])");
  const std::string log = node.Containers("p", "a").at(0)->status.log_path;
  ASSERT_TRUE(node.files.MakeDirectories(std::string(DirectoryName(log)), 0755).ok());
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(node.files.WriteFile(log, std::string(101, 'x'), 0644).ok());
    node.Advance(seconds(3));
    EXPECT_EQ(RotatedLogs(node.files, log).size(), 1u);
  }
  node.RunFor(std::chrono::milliseconds(10), 1);
  node.CreatePod("q", R"("containers":[{"name":"a","image":"busybox:1"}])");
  node.Advance(seconds(45));
  EXPECT_GE((*node.Pod("q"))["status"]["containerStatuses"].at(0)["restartCount"].integer(), 9);
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

TEST(NodeAgent, DeletesContainersThenClaimsThenTheObject) {
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

TEST(NodeAgent, AFailedInitContainerFailsAPodWithRestartPolicyNever) {
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

TEST(NodeAgent, SurvivesBeingKilledAfterEveryStep) {
  for (int steps = 0; steps < 200; steps += 1) {
    SCOPED_TRACE(steps);
    NodeHarness node;
    node.RunFor(seconds(5));
    node.StartAgent();
    FakeDriver driver(node, "gpu.example.com", "gpu-reg.sock");
    driver.Start();
    node.CreateClaim("c", {"gpu.example.com/dev-0"});
    // Created and reserved, then bound; steps are counted from the binding.
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

TEST(NodeAgent, RemovesAPodThatWasForceDeletedWhileTheAgentWasDown) {
  GpuNode node;
  node.CreatePodWithClaim();
  node.KillAgent();
  ASSERT_TRUE(node.api.Delete("Pod", "default/p", {.grace_period_seconds = 0}).ok());
  node.StartAgent();
  node.Advance(seconds(5));
  EXPECT_TRUE(node.machine.sandboxes.empty());
  EXPECT_THAT(node.history, ElementsAre("prepare c", "unprepare c"));
}

TEST(NodeAgent, UnpreparesLeftoverClaimsOfAPodWithoutContainersAtOnce) {
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

TEST(NodeAgent, RunsEphemeralContainersOnce) {
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

TEST(NodeAgent, SettingTheClockBackDelaysNothing) {
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

TEST(NodeAgent, ReportsTheFieldsItIgnores) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePod("p", R"("containers":[{"name":"a","image":"busybox:1",
    "securityContext":{"appArmorProfile":{"type":"Unconfined"},
    "seLinuxOptions":{"level":"s0"}}}],"securityContext":{"seccompProfile":{"type":"RuntimeDefault"}})");
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(node.Events("UnsupportedFields").at(0),
            "this node ignores: "
            "securityContext.seLinuxOptions of container a");
}

TEST(NodeAgent, PodsThatNeedUnsupportedIsolationAreRejected) {
  struct Case {
    const char* name;
    const char* fields;
    const char* reason;
    const char* message;
  };
  const Case cases[] = {
      {"runtime-class", R"("runtimeClassName":"gvisor",)", "RuntimeClassUnsupported",
       "no handler \"runsc\", which RuntimeClass \"gvisor\" asks for; it has only the default"},
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

TEST(NodeAgent, OnlyTheContainerWithExponentiallyGrowingVariablesFails) {
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
