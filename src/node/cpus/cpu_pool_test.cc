// The static CPU manager in the node agent: containers, the checkpoint, restarts, podresources.
#include "node/cpus/cpu_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"
#include "node/cpus/cpu_checkpoint.h"
#include "node/testing/node_harness.h"
#include "rpc/podresources/podresources.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kState[] = "/var/lib/kubelet/cpu_manager_state";
constexpr char kShared[] = R"("containers":[{"name":"a","image":"busybox:1"}])";

// Four CPUs, of which the first is reserved.
struct CpuNode : NodeHarness {
  CpuNode() {
    CpuTopology topology;
    for (int cpu = 0; cpu < 4; ++cpu) topology.cpus[cpu] = {.core = cpu};
    cpu_manager = *CpuManager::Make({.topology = topology, .reserved = {0}});
    StartAgent();
    EXPECT_TRUE(started.ok()) << started.error().message;
  }
  void CreateExclusive(const std::string& name, int cpus) {
    const std::string amounts = StrCat(R"({"cpu":")", cpus, R"(","memory":"16Mi"})");
    CreatePod(name, StrCat(R"("terminationGracePeriodSeconds":0,"containers":[{"name":"a",)",
                           R"("image":"busybox:1","resources":{"requests":)", amounts,
                           R"(,"limits":)", amounts, "}}]"));
    Run();
  }
  // The CPUs of the pod's container now.
  std::string Cpus(const std::string& pod) {
    const auto found = Containers(pod, "a");
    if (found.empty()) return "(none)";
    const ContainerConfig& config = found.back()->config;
    return config.cgroup_changes.cpuset_cpus.empty() ? config.resources.cpuset_cpus
                                                     : config.cgroup_changes.cpuset_cpus;
  }
  std::vector<std::int64_t> Ids(const std::string& pod) {
    const auto questions =
        rpc::MakePodResourcesClient(transport, "/var/lib/kubelet/pod-resources/kubelet.sock");
    std::vector<std::int64_t> ids;
    questions->Get({.name = pod, .namespace_name = "default"}, seconds(1), [&](auto answer) {
      if (answer.ok()) ids = answer->containers.at(0).cpu_ids;
    });
    Run();
    return ids;
  }
};

TEST(CpuPool, AContainerGetsItsCpusAndTheOthersMoveUntilItEnds) {
  CpuNode node;
  node.CreatePod("early", kShared);
  node.Run();
  EXPECT_EQ(node.Cpus("early"), "0-3");
  node.CreateExclusive("own", 2);
  EXPECT_EQ(node.Phase("own"), "Running");
  EXPECT_EQ(node.Cpus("own"), "1-2");
  EXPECT_EQ(node.Containers("own", "a").back()->config.resources.cpu_quota_us, 0);
  EXPECT_EQ(node.Cpus("early"), "0,3");
  node.CreatePod("late", kShared);
  node.Run();
  EXPECT_EQ(node.Cpus("late"), "0,3");
  EXPECT_THAT(node.Ids("own"), ElementsAre(1, 2));
  EXPECT_THAT(node.Ids("late"), IsEmpty());
  node.DeletePod("own");
  node.Advance(seconds(1));
  EXPECT_EQ(node.Cpus("early"), "0-3");
  EXPECT_EQ(ReadCpuCheckpoint(*node.files.ReadFile(kState))->exclusive.size(), 0u);
}

TEST(CpuPool, ARestartedAgentKnowsWhoHasWhat) {
  CpuNode node;
  node.CreateExclusive("own", 2);
  node.KillAgent();
  node.StartAgent();
  ASSERT_TRUE(node.started.ok());
  EXPECT_EQ(node.Phase("own"), "Running");
  node.CreatePod("late", kShared);
  node.Run();
  EXPECT_EQ(node.Cpus("late"), "0,3");
  EXPECT_THAT(node.Ids("own"), ElementsAre(1, 2));
}

TEST(CpuPool, ThePodThatIsGoneAfterARestartReleasesItsCpus) {
  CpuNode node;
  node.CreateExclusive("own", 2);
  node.KillAgent();
  node.machine.containers.clear();
  node.machine.sandboxes.clear();
  node.api.Delete("Pod", "default/own");
  node.StartAgent();
  node.Advance(seconds(20));
  node.CreateExclusive("next", 3);
  EXPECT_EQ(node.Cpus("next"), "1-3");
}

TEST(CpuPool, APodWithoutRoomIsRejected) {
  CpuNode node;
  node.CreateExclusive("first", 2);
  node.CreateExclusive("second", 2);
  EXPECT_EQ(node.Phase("second"), "Failed");
  const api::ObjectPtr pod = node.Pod("second");
  EXPECT_EQ((*pod)["status"]["reason"].str(), "UnexpectedAdmissionError");
  EXPECT_THAT(std::string((*pod)["status"]["message"].str()),
              HasSubstr("not enough cpus available to satisfy request: requested=2, available=1"));
}

TEST(CpuPool, TheAgentDoesNotStartOnAStateThatDoesNotFit) {
  CpuNode node;
  node.KillAgent();
  ASSERT_TRUE(node.files.WriteFile(kState, WriteCpuCheckpoint({.shared = {0, 1}}), 0600).ok());
  node.StartAgent();
  ASSERT_FALSE(node.started.ok());
  EXPECT_THAT(node.started.error().message, HasSubstr("drain the node, remove the file"));
  EXPECT_THAT(node.started.error().message,
              HasSubstr("this machine has the CPUs 0-3, and had 0-1"));
}

TEST(CpuPool, AGuaranteedPodCannotGetOtherCpus) {
  CpuNode node;
  node.CreateExclusive("own", 2);
  api::Draft changed(node.Pod("own")->tree());
  for (const api::FieldName part : api::FieldNames{"requests", "limits"}) {
    changed["spec"]["containers"].at(0)["resources"][part].Entry("cpu") = "1";
  }
  const auto reply = node.api.Update("Pod", "default/own", "resize", changed.Freeze());
  ASSERT_TRUE(reply.ok()) << reply.error->message;
  node.Advance(seconds(1));
  std::string why;
  const api::ObjectPtr pod = node.Pod("own");
  for (api::Value condition : (*pod)["status"]["conditions"].elements()) {
    if (condition["type"].str() == "PodResizePending") {
      why = StrCat(condition["reason"].str(), ": ", condition["message"].str());
    }
  }
  EXPECT_EQ(why,
            "Infeasible: Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "
            "\"static\"");
  EXPECT_EQ(node.Cpus("own"), "1-2");
}

TEST(CpuPool, AFailedMoveIsTriedAgain) {
  CpuNode node;
  node.CreatePod("early", kShared);
  node.Run();
  node.machine.FailNext("ChangeCgroup", Error{ErrorCode::kUnavailable, "busy"});
  node.CreateExclusive("own", 2);
  EXPECT_EQ(node.Cpus("early"), "0-3");
  node.Advance(seconds(10));
  EXPECT_EQ(node.Cpus("early"), "0,3");
}

}  // namespace
}  // namespace drakkar::node
