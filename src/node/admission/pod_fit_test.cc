// Why this node must not run a pod that somebody bound to it.
#include "node/admission/pod_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

api::TreePtr Parse(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return *tree;
}

std::string Why(const AllowedSysctls& allowed, std::string_view name, std::string_view spec = "") {
  const auto pod = Parse(StrCat(R"({"spec":{"securityContext":{"sysctls":[{"name":")", name,
                                R"(","value":"1"}]})", spec, "}}"));
  const auto verdict = allowed.Check(pod->root());
  if (!verdict) return "(allowed)";
  EXPECT_EQ(verdict->reason, "SysctlForbidden");
  return verdict->message;
}

TEST(AllowedSysctls, OnlySafeOnesUnlessTheNodesOwnerSaysMore) {
  const AllowedSysctls none;
  EXPECT_EQ(Why(none, "kernel.shm_rmid_forced"), "(allowed)");
  EXPECT_EQ(Why(none, "net/ipv4/tcp_syncookies"), "(allowed)");
  EXPECT_EQ(Why(none, "kernel.msgmax"), "forbidden sysctl: \"kernel.msgmax\" not allowlisted");
  EXPECT_EQ(Why(none, "kernel.shm_rmid_forced", R"(,"hostIPC":true)"),
            "forbidden sysctl: \"kernel.shm_rmid_forced\" not allowed with host ipc enabled");
  EXPECT_EQ(Why(none, "net.ipv4.tcp_rmem", R"(,"hostNetwork":true)"),
            "forbidden sysctl: \"net.ipv4.tcp_rmem\" not allowed with host net enabled");
  const AllowedSysctls more = *AllowedSysctls::Make({"kernel.msg*", "net.core.somaxconn"});
  EXPECT_EQ(Why(more, "kernel.msgmax"), "(allowed)");
  EXPECT_EQ(Why(more, "kernel.msgmax", R"(,"hostIPC":true)"),
            "forbidden sysctl: \"kernel.msgmax\" not allowed with host ipc enabled");
  EXPECT_EQ(Why(more, "net.core.somaxconn"), "(allowed)");
  EXPECT_EQ(Why(more, "net.core.somaxconn2"),
            "forbidden sysctl: \"net.core.somaxconn2\" not allowlisted");
}

TEST(AllowedSysctls, ANameWithoutANamespaceCannotBeAllowed) {
  EXPECT_EQ(AllowedSysctls::Make({"vm.swappiness"}).error().message,
            "the sysctls \"vm.swappiness\" are not known to be namespaced");
  EXPECT_FALSE(AllowedSysctls::Make({"kernel.*"}).ok());
}

TEST(OperatingSystem, OnlyLinuxRunsHere) {
  const auto why = [](std::string_view spec) {
    const auto pod = Parse(StrCat(R"({"spec":{)", spec, "}}"));
    const auto verdict = CheckOperatingSystem(pod->root());
    return verdict ? verdict->reason : "(runs)";
  };
  EXPECT_EQ(why(R"("os":{"name":"linux"},"nodeSelector":{"kubernetes.io/os":"linux"})"), "(runs)");
  EXPECT_EQ(why(R"("os":{"name":"windows"})"), "PodOSNotSupported");
  EXPECT_EQ(why(R"("nodeSelector":{"kubernetes.io/os":"windows"})"),
            "PodOSSelectorNodeLabelDoesNotMatch");
}

TEST(Room, APodThatDoesNotFitIsRejectedWithTheFirstResourceThatIsMissing) {
  const auto pod =
      Parse(R"({"spec":{"containers":[{"resources":{"requests":{"cpu":"2","memory":"1Gi"}}}]}})");
  const NodeAmounts all{.cpu_milli = 4000, .memory_bytes = 2l << 30, .pods = 3};
  const auto why = [&](const NodeAmounts& used) {
    const auto verdict = CheckRoom(pod->root(), all, used);
    return verdict ? verdict->reason + ": " + verdict->message : "(fits)";
  };
  EXPECT_EQ(why({.cpu_milli = 2000, .memory_bytes = 1l << 30, .pods = 2}), "(fits)");
  EXPECT_EQ(why({.cpu_milli = 2001}),
            "OutOfcpu: Node didn't have enough resource: cpu, requested: 2000, used: 2001, "
            "capacity: 4000");
  EXPECT_EQ(why({.memory_bytes = (1l << 30) + 1}),
            "OutOfmemory: Node didn't have enough resource: memory, requested: 1073741824, used: "
            "1073741825, capacity: 2147483648");
  EXPECT_EQ(
      why({.pods = 3}),
      "OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3");
  const auto none = Parse(R"({"spec":{"containers":[{}]}})");
  EXPECT_FALSE(CheckRoom(none->root(), all, {.cpu_milli = 9000, .memory_bytes = 9l << 30}))
      << "it asks for nothing";
  EXPECT_FALSE(CheckRoom(pod->root(), {}, {.pods = 1000})) << "nothing is known";
}

TEST(Room, TheNodeRejectsWhatDoesNotFitAndTakesItOnceThereIsRoom) {
  NodeHarness node;
  node.StartAgent();  // four CPUs
  const auto spec = R"("terminationGracePeriodSeconds":0,"containers":[{"name":"a",)"
                    R"("image":"busybox:1","resources":{"requests":{"cpu":"3"}}}])";
  node.CreatePod("first", spec);
  node.Run();
  node.CreatePod("second", spec);
  node.Run();
  EXPECT_EQ(node.Phase("first"), "Running");
  EXPECT_EQ((*node.Pod("second"))["status"]["reason"].str(), "OutOfcpu");
  node.KillAgent();
  node.StartAgent();
  EXPECT_EQ(node.Phase("first"), "Running");
  node.DeletePod("first");
  node.Advance(std::chrono::seconds(1));
  node.CreatePod("third", spec);
  node.Run();
  EXPECT_EQ(node.Phase("third"), "Running");
}

}  // namespace
}  // namespace drakkar::node
