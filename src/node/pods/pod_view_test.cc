// What containers see of the cluster, and how containers that never ran are reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "base/testing/memory_file_system.h"
#include "base/text/text.h"
#include "node/pods/container_config.h"
#include "node/pods/log_stream.h"
#include "node/pods/service_variables.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::StartsWith;

api::TreePtr Parse(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return *tree;
}

// "name state reason" of each container of a pod.
std::vector<std::string> States(NodeHarness& node, api::FieldName list) {
  std::vector<std::string> states;
  const auto pod = node.Pod("p");
  for (api::Value each : (*pod)["status"][list].elements()) {
    for (const api::MemberView state : each["state"].members()) {
      states.push_back(
          StrCat(each["name"].str(), " ", state.name, " ", state.value["reason"].str()));
    }
  }
  return states;
}

TEST(PodStatus, ContainersAfterAFailedInitContainerStayWaiting) {
  NodeHarness node;
  node.RunFor(seconds(1), 1);
  node.StartAgent();
  node.CreatePod("p", R"("restartPolicy":"Never",
    "initContainers":[{"name":"i","image":"busybox:1"},{"name":"j","image":"busybox:1"}],
    "containers":[{"name":"a","image":"busybox:1"}])");
  EXPECT_THAT(States(node, "containerStatuses"), ElementsAre("a waiting PodInitializing"));
  node.Advance(seconds(5));
  EXPECT_EQ(node.Phase("p"), "Failed");
  EXPECT_THAT(States(node, "initContainerStatuses"),
              ElementsAre("i terminated Error", "j waiting PodInitializing"));
  EXPECT_THAT(States(node, "containerStatuses"), ElementsAre("a waiting PodInitializing"));
}

TEST(PodStatus, AContainerLostAfterInitializationIsReportedAsTerminated) {
  NodeHarness node;
  node.machine.program_of = [](const ContainerConfig& config) {
    HollowProgram program;
    if (config.name == "i") program.runs_for = seconds(1);
    if (config.name == "a") program.create_error = Internal("no");
    return program;
  };
  node.StartAgent();
  node.CreatePod("p", R"("restartPolicy":"Never","activeDeadlineSeconds":20,
    "initContainers":[{"name":"i","image":"busybox:1"}],
    "containers":[{"name":"a","image":"busybox:1"}])");
  node.Advance(seconds(30));
  EXPECT_EQ(node.Phase("p"), "Failed");
  EXPECT_THAT(States(node, "containerStatuses"),
              ElementsAre("a terminated ContainerStatusUnknown"));
}

TEST(PodStatus, SaysWhichResourcesAndWhichUserAContainerHas) {
  NodeHarness node;
  node.machine.program_of = [](const ContainerConfig&) {
    return HollowProgram{.user = ContainerIdentity{1000, 1001, {4}}};
  };
  node.StartAgent();
  node.CreatePod("p", R"("containers":[{"name":"a","image":"busybox:1"}])");
  const auto pod = node.Pod("p");
  const api::Value status = (*pod)["status"]["containerStatuses"].at(0);
  // Empty, but there: Go clients read an absent one as unknown.
  EXPECT_TRUE(status["resources"].is_object());
  EXPECT_EQ(api::WriteJson(status["user"], {.sort_members = true}),
            R"({"linux":{"gid":1001,"supplementalGroups":[4],"uid":1000}})");
}

TEST(PodStatus, APodWhoseGroupsTheRuntimeCannotRestrictIsRejected) {
  NodeHarness node;
  node.machine.has_groups_policy = false;
  node.StartAgent();
  node.CreatePod("p", R"("securityContext":{"supplementalGroupsPolicy":"Strict"},
    "containers":[{"name":"a","image":"busybox:1"}])");
  EXPECT_EQ(node.Phase("p"), "Failed");
  EXPECT_EQ((*node.Pod("p"))["status"]["reason"].str(), "SupplementalGroupsPolicyNotSupported");
  const auto object = node.api.Get("Node", "node-1");
  EXPECT_EQ((*object)["status"]["features"]["supplementalGroupsPolicy"].optional_boolean(), false);
}

TEST(PodStatus, FallsBackToTheLogTailOfAFailedContainer) {
  NodeHarness node;
  node.RunFor(seconds(1), 1);
  node.StartAgent();
  node.CreatePod("p", R"("restartPolicy":"Never","containers":[{"name":"a","image":"busybox:1",
    "terminationMessagePolicy":"FallbackToLogsOnError"}])");
  const std::string path = node.Containers("p", "a").at(0)->status.log_path;
  ASSERT_FALSE(path.empty());
  ASSERT_TRUE(node.files.MakeDirectories(DirectoryName(path), 0755).ok());
  ASSERT_TRUE(node.files
                  .WriteFile(path,
                             "2026-01-01T00:00:00.0Z stdout F first\n"
                             "2026-01-01T00:00:00.0Z stderr P DO\n"
                             "2026-01-01T00:00:00.0Z stderr P NE\n",
                             0644)
                  .ok());
  node.Advance(seconds(5));
  const auto pod = node.Pod("p");
  EXPECT_EQ((*pod)["status"]["containerStatuses"].at(0)["state"]["terminated"]["message"].str(),
            "first\nDONE");
}

TEST(LogTail, IsBoundedByLinesAndBytes) {
  MemoryFileSystem files;
  std::string log;
  for (int i = 0; i < 100; ++i) log += StrCat("2026-01-01T00:00:00.0Z stdout F ", i, "\n");
  ASSERT_TRUE(files.WriteFile("/log", log, 0644).ok());
  EXPECT_EQ(ReadLogTail(files, "/log", 3, 2048), "97\n98\n99\n");
  EXPECT_EQ(ReadLogTail(files, "/log", 80, 5), "8\n99\n");
  EXPECT_EQ(ReadLogTail(files, "/none", 80, 5), "");
}

TEST(HostsFile, HasTheContentThatAKubeletWrites) {
  const auto pod = Parse(R"({"metadata":{"name":"p","namespace":"n"},"spec":{"subdomain":"s",
    "hostAliases":[{"ip":"10.1.2.3","hostnames":["db","db.local"]}]}})");
  EXPECT_EQ(HostsFileText({.pod = pod->root(), .pod_ips = {"10.0.0.1"}}, "unused"),
            "# Kubernetes-managed hosts file.\n"
            "127.0.0.1\tlocalhost\n"
            "::1\tlocalhost ip6-localhost ip6-loopback\n"
            "fe00::0\tip6-localnet\n"
            "fe00::0\tip6-mcastprefix\n"
            "fe00::1\tip6-allnodes\n"
            "fe00::2\tip6-allrouters\n"
            "10.0.0.1\tp.s.n.svc.cluster.local\tp\n"
            "\n# Entries added by HostAliases.\n"
            "10.1.2.3\tdb\tdb.local\n");
  const auto host = Parse(R"({"metadata":{"name":"p"},"spec":{"hostNetwork":true}})");
  EXPECT_EQ(HostsFileText({.pod = host->root(), .pod_ips = {"10.0.0.1"}}, "127.0.0.1 localhost\n"),
            "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n");
}

TEST(HostsFile, EveryContainerGetsOneUnlessItMountsItsOwn) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePod("p", R"("volumes":[{"name":"v","emptyDir":{}}],
    "containers":[{"name":"a","image":"busybox:1"},{"name":"b","image":"busybox:1",
      "volumeMounts":[{"name":"v","mountPath":"/etc/hosts"}]}])");
  const auto sources = [&](const char* container) {
    std::vector<std::string> found;
    for (const Mount& mount : node.Containers("p", container).at(0)->config.mounts) {
      if (mount.container_path == "/etc/hosts") found.push_back(mount.host_path);
    }
    return found;
  };
  ASSERT_EQ(sources("a").size(), 1u);
  EXPECT_THAT(*node.files.ReadFile(sources("a")[0]),
              StartsWith("# Kubernetes-managed hosts file."));
  ASSERT_EQ(sources("b").size(), 1u);
  EXPECT_NE(sources("b"), sources("a"));
}

TEST(ServiceVariables, AreNamedAsInKubernetes) {
  Variables variables;
  AddServiceVariables(Parse(R"({"metadata":{"name":"my-db.v2"},"spec":{"clusterIP":"10.0.0.11",
    "ports":[{"name":"sql-main","port":5432,"protocol":"TCP"},{"name":"stats","port":53,"protocol":"UDP"}]}})")
                          ->root(),
                      variables);
  EXPECT_THAT(variables, ElementsAre(Pair("MY_DB_V2_PORT", "tcp://10.0.0.11:5432"),
                                     Pair("MY_DB_V2_PORT_53_UDP", "udp://10.0.0.11:53"),
                                     Pair("MY_DB_V2_PORT_53_UDP_ADDR", "10.0.0.11"),
                                     Pair("MY_DB_V2_PORT_53_UDP_PORT", "53"),
                                     Pair("MY_DB_V2_PORT_53_UDP_PROTO", "udp"),
                                     Pair("MY_DB_V2_PORT_5432_TCP", "tcp://10.0.0.11:5432"),
                                     Pair("MY_DB_V2_PORT_5432_TCP_ADDR", "10.0.0.11"),
                                     Pair("MY_DB_V2_PORT_5432_TCP_PORT", "5432"),
                                     Pair("MY_DB_V2_PORT_5432_TCP_PROTO", "tcp"),
                                     Pair("MY_DB_V2_SERVICE_HOST", "10.0.0.11"),
                                     Pair("MY_DB_V2_SERVICE_PORT", "5432"),
                                     Pair("MY_DB_V2_SERVICE_PORT_SQL_MAIN", "5432"),
                                     Pair("MY_DB_V2_SERVICE_PORT_STATS", "53")));
  variables.clear();
  AddServiceVariables(
      Parse(R"({"metadata":{"name":"h"},"spec":{"clusterIP":"None","ports":[{"port":1}]}})")
          ->root(),
      variables);
  EXPECT_TRUE(variables.empty());
}

TEST(ServiceVariables, OfTheNamespaceAreSetUnlessEnableServiceLinksIsFalse) {
  NodeHarness node;
  node.service_variables = ApiServerVariables("10.9.9.9", "6443");
  node.api.Create(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"other"}})");
  for (const auto& [home, ip] :
       std::map<std::string, std::string>{{"default", "10.96.0.11"}, {"other", "10.96.0.12"}}) {
    node.api.Create(StrCat(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"in-)", home,
                           R"(","namespace":")", home, R"("},"spec":{"clusterIP":")", ip,
                           R"(","ports":[{"port":80}]}})"));
  }
  node.StartAgent();
  node.CreatePod("p", R"json("containers":[{"name":"a","image":"busybox:1",
    "env":[{"name":"KUBERNETES_PORT","value":"mine"},{"name":"X","value":"$(IN_DEFAULT_SERVICE_HOST)"}]}])json");
  node.CreatePod("q",
                 R"("enableServiceLinks":false,"containers":[{"name":"a","image":"busybox:1"}])");
  const HollowContainer& with = *node.Containers("p", "a").at(0);
  EXPECT_EQ(EnvironmentOf(with, "IN_DEFAULT_SERVICE_PORT"), "80");
  EXPECT_EQ(EnvironmentOf(with, "X"), "10.96.0.11");
  EXPECT_EQ(EnvironmentOf(with, "IN_OTHER_SERVICE_PORT"), "(none)");
  EXPECT_EQ(EnvironmentOf(with, "KUBERNETES_SERVICE_HOST"), "10.9.9.9");
  EXPECT_EQ(EnvironmentOf(with, "KUBERNETES_SERVICE_PORT_HTTPS"), "6443");
  EXPECT_EQ(EnvironmentOf(with, "KUBERNETES_PORT"), "mine");
  const HollowContainer& without = *node.Containers("q", "a").at(0);
  EXPECT_EQ(EnvironmentOf(without, "IN_DEFAULT_SERVICE_PORT"), "(none)");
  EXPECT_EQ(EnvironmentOf(without, "KUBERNETES_PORT"), "tcp://10.9.9.9:6443");
}

TEST(ServiceVariables, FollowTheApiServerThatTheNodeUses) {
  NodeHarness node;
  node.service_variables = ApiServerVariables("10.9.9.9", "6443");
  node.StartAgent();
  node.agent->SetServiceVariables(ApiServerVariables("10.9.9.8", "6444"));
  node.CreatePod("p", R"("containers":[{"name":"a","image":"busybox:1"}])");
  const HollowContainer& container = *node.Containers("p", "a").at(0);
  EXPECT_EQ(EnvironmentOf(container, "KUBERNETES_SERVICE_HOST"), "10.9.9.8");
  EXPECT_EQ(EnvironmentOf(container, "KUBERNETES_SERVICE_PORT"), "6444");
}

}  // namespace
}  // namespace drakkar::node
