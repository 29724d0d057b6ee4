#include "node/nri/adjustment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/nri/apply_adjustment.h"
#include "node/nri/describe.h"

namespace drakkar::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Event = rpc::NriEvent;

ContainerConfig Config() {
  ContainerConfig config;
  config.id = "c1";
  config.name = "c";
  config.command = {"sh"};
  config.arguments = {"-c", "true"};
  config.environment = {{"A", "1"}, {"AB", "2"}};
  config.mounts = {{.host_path = "/host", .container_path = "/data", .readonly = true}};
  config.annotations = {{"note", "x"}};
  config.resources.cpu_shares = 512;
  config.resources.memory_limit_bytes = 1 << 20;
  return config;
}

PodSandbox Sandbox() {
  PodSandbox sandbox;
  sandbox.id = "s1";
  sandbox.cgroup_parent = "/drakkar/podu";
  sandbox.network_namespace = "/run/netns/n";
  sandbox.namespaces = {{"ipc", "/ns/ipc"}};
  sandbox.resources.cpu_quota_us = 50'000;
  return sandbox;
}

AnswerCollector Collector() {
  return AnswerCollector(Event::kCreateContainer, DescribeContainer(Sandbox(), Config()));
}

rpc::NriAnswer Adjust(rpc::NriContainerAdjustment adjustment) {
  return {std::move(adjustment), {}, {}};
}

TEST(NriDescription, PluginsSeeTheContainersConfiguration) {
  const rpc::NriContainer container = DescribeContainer(Sandbox(), Config());
  EXPECT_EQ(container.id, "c1");
  EXPECT_EQ(container.pod_sandbox_id, "s1");
  EXPECT_THAT(container.args, ElementsAre("sh", "-c", "true"));
  EXPECT_THAT(container.env, ElementsAre("A=1", "AB=2"));
  EXPECT_THAT(container.mounts,
              ElementsAre(rpc::NriMount{"/data", "bind", "/host", {"rbind", "rprivate", "ro"}}));
  EXPECT_EQ(container.resources.cpu_shares, 512);
  EXPECT_EQ(container.resources.memory_limit, 1 << 20);
  EXPECT_FALSE(container.resources.cpu_quota) << "not set";
  EXPECT_EQ(container.cgroups_path, "/drakkar/podu/c1");
  EXPECT_EQ(container.seccomp_profile, rpc::NriSeccompProfile::kUnconfined);
}

TEST(NriDescription, PluginsSeeTheSandboxesNamespacesCgroupAndResources) {
  const rpc::NriPodSandbox pod = DescribeSandbox(Sandbox());
  EXPECT_THAT(pod.linux_namespaces,
              ElementsAre(Pair("ipc", "/ns/ipc"), Pair("network", "/var/run/netns/n")));
  EXPECT_EQ(pod.cgroup_parent, "/drakkar/podu");
  EXPECT_EQ(pod.pod_resources.cpu_quota, 50'000);
}

TEST(NriDescription, AContainerOfAnEarlierAgentIsReadFromItsBundle) {
  ContainerStatus status;
  status.id = "c1";
  status.sandbox_id = "s1";
  status.name = "c";
  status.state = ContainerState::kRunning;
  const rpc::NriContainer container = DescribeContainer(
      status,
      R"({"process": {"args": ["sleep"], "env": ["DRA_X=0-1"], "user": {"uid": 5, "gid": 6}},
          "mounts": [{"destination": "/d", "type": "bind", "source": "/s", "options": ["ro"]}],
          "linux": {"cgroupsPath": "/drakkar/podu/c1",
                    "resources": {"cpu": {"cpus": "1", "shares": 2}, "memory": {"limit": 7},
                                  "pids": {"limit": 9}}}})");
  EXPECT_EQ(container.state, rpc::NriContainerState::kRunning);
  EXPECT_THAT(container.env, ElementsAre("DRA_X=0-1"));
  EXPECT_THAT(container.args, ElementsAre("sleep"));
  EXPECT_EQ(container.uid, 5u);
  EXPECT_EQ(container.mounts.size(), 1u);
  EXPECT_EQ(container.resources.cpus, "1");
  EXPECT_EQ(container.resources.memory_limit, 7);
  EXPECT_EQ(container.resources.pids, 9);
  EXPECT_TRUE(DescribeContainer(status, "broken").env.empty());
}

TEST(NriAdjustment, EachPluginSeesThePreviousPluginsAdjustments) {
  AnswerCollector collector = Collector();
  ASSERT_TRUE(collector
                  .Add("10-a", Adjust({.annotations = {{"-note", ""}},
                                       .env = {{"A", "changed"}, {"NEW", "n"}},
                                       .resources = {.cpus = "1"}}))
                  .ok());
  EXPECT_THAT(collector.container().env, ElementsAre("AB=2", "A=changed", "NEW=n"));
  EXPECT_EQ(collector.container().resources.cpus, "1");
  EXPECT_EQ(collector.container().resources.cpu_shares, 512) << "the rest stays";
  ASSERT_TRUE(collector
                  .Add("20-b", Adjust({.mounts = {{"-/data", "", "", {}},
                                                  {"/more", "bind", "/m", {"bind", "ro"}}},
                                       .env = {{"-AB", ""}},
                                       .args = {"true"}}))
                  .ok());
  EXPECT_THAT(collector.container().env, ElementsAre("A=changed", "NEW=n"));
  EXPECT_TRUE(collector.container().annotations.empty());

  ContainerConfig config = Config();
  ASSERT_TRUE(ApplyAdjustment(collector.adjustment(), nullptr, config).ok());
  EXPECT_EQ(DescribeContainer(Sandbox(), config).env, collector.container().env);
  EXPECT_EQ(DescribeContainer(Sandbox(), config).args, collector.container().args);
  EXPECT_TRUE(config.annotations.empty());
  EXPECT_EQ(config.cgroup_changes.cpuset_cpus, "1");
  ASSERT_EQ(config.mounts.size(), 1u);
  EXPECT_EQ(config.mounts[0].container_path, "/more");
  EXPECT_EQ(config.mounts[0].host_path, "/m");
  EXPECT_TRUE(config.mounts[0].readonly);
  EXPECT_TRUE(config.mounts[0].options.empty());
}

TEST(NriAdjustment, EverythingThatARuntimeCanDoIsApplied) {
  ContainerConfig config = Config();
  config.rlimits = {{"RLIMIT_CORE", 9, 9}};
  config.devices = {{.host_path = "/dev/old"}};
  std::vector<std::string> injected;
  const auto injector = [&](const std::vector<std::string>& names, ContainerConfig&) {
    injected = names;
    return Ok();
  };
  const auto applied = ApplyAdjustment(
      {.hooks = {{"createRuntime", "/h", {"h"}, {"E=1"}, 3}},
       .rlimits = {{"RLIMIT_CORE", 1, 0}},
       .cdi_devices = {"v.com/c=d"},
       .devices = {{"-/dev/old", "", 0, 0, {}, {}, {}}, {"/dev/new", "c", 1, 5, 0600, 2, 3}},
       .resources = {.memory_limit = 5,
                     .memory_reservation = 4,
                     .memory_swap = 6,
                     .memory_swappiness = 7,
                     .disable_oom_killer = true,
                     .cpu_shares = 8,
                     .cpu_quota = 9,
                     .cpu_period = 10,
                     .realtime_runtime = 11,
                     .realtime_period = 12,
                     .cpus = "0",
                     .mems = "1",
                     .hugepage_limits = {{"2MB", 13}},
                     .unified = {{"memory.high", "14"}},
                     .devices = {{true, "b", 8, std::nullopt, ""}},
                     .pids = 15},
       .cgroups_path = "/x/c1",
       .oom_score_adj = 100,
       .seccomp = rpc::NriSeccomp{.default_action = "SCMP_ACT_ALLOW",
                                  .syscalls = {{{"mount"}, "SCMP_ACT_ERRNO", 1, {}}}},
       .namespaces = {{"network", "/run/netns/other"}, {"-ipc", ""}, {"uts", ""}},
       .sysctl = {{"net.core.somaxconn", "1"}}},
      injector, config);
  ASSERT_TRUE(applied.ok()) << applied.error().message;
  EXPECT_THAT(injected, ElementsAre("v.com/c=d"));
  ASSERT_EQ(config.hooks.size(), 1u);
  EXPECT_EQ(config.hooks[0].name, "createRuntime");
  EXPECT_EQ(config.hooks[0].timeout_seconds, 3);
  ASSERT_EQ(config.rlimits.size(), 1u);
  EXPECT_EQ(config.rlimits[0].hard, 1u);
  ASSERT_EQ(config.devices.size(), 1u);
  EXPECT_EQ(config.devices[0].container_path, "/dev/new");
  EXPECT_EQ(config.devices[0].type, 'c');
  EXPECT_EQ(config.devices[0].minor, 5);
  const CgroupChanges wanted{.memory_limit_bytes = 5,
                             .memory_reservation_bytes = 4,
                             .memory_swap_bytes = 6,
                             .memory_swappiness = 7,
                             .disable_oom_killer = true,
                             .cpu_shares = 8,
                             .cpu_quota_us = 9,
                             .cpu_period_us = 10,
                             .realtime_runtime_us = 11,
                             .realtime_period_us = 12,
                             .cpuset_cpus = "0",
                             .cpuset_mems = "1",
                             .pids_limit = 15,
                             .hugepage_limits_bytes = {{"2MB", 13}},
                             .unified = {{"memory.high", "14"}}};
  EXPECT_EQ(config.cgroup_changes, wanted);
  ASSERT_EQ(config.device_rules.size(), 1u);
  EXPECT_EQ(config.device_rules[0].type, 'b');
  EXPECT_EQ(config.device_rules[0].access, "rwm");
  EXPECT_EQ(config.cgroup_path, "/x/c1");
  EXPECT_EQ(config.resources.oom_score_adjust, 100);
  EXPECT_EQ(config.security.seccomp, SeccompKind::kLocalhost);
  EXPECT_THAT(config.security.seccomp_profile, HasSubstr(R"("names":["mount"])"));
  EXPECT_THAT(config.namespaces, ElementsAre(Pair("ipc", ""), Pair("network", "/run/netns/other"),
                                             Pair("uts", "new")));
  EXPECT_EQ(config.sysctls.at("net.core.somaxconn"), "1");
}

TEST(NriAdjustment, WhatTheRuntimeWouldIgnoreIsRefused) {
  const auto refusal = [](rpc::NriContainerAdjustment adjustment) {
    ContainerConfig config = Config();
    const auto applied = ApplyAdjustment(adjustment, nullptr, config);
    return applied.ok() ? std::string() : applied.error().message;
  };
  EXPECT_THAT(refusal({.resources = {.blockio_class = "x"}}), HasSubstr("block I/O classes"));
  EXPECT_THAT(refusal({.resources = {.rdt_class = "x"}}), HasSubstr("RDT classes"));
  EXPECT_THAT(refusal({.resources = {.memory_kernel = 1}}), HasSubstr("kernel memory"));
  EXPECT_THAT(refusal({.resources = {.use_hierarchy = false}}), HasSubstr("hierarchy"));
  EXPECT_THAT(refusal({.cdi_devices = {"v.com/c=d"}}), HasSubstr("CDI devices"));
  EXPECT_THAT(refusal({.hooks = {{"prestart", "h", {}, {}, {}}}}), HasSubstr("absolute"));
  EXPECT_THAT(refusal({.devices = {{"/dev/x", "z", 1, 1, {}, {}, {}}}}), HasSubstr("unknown type"));
  EXPECT_THAT(refusal({.namespaces = {{"mount", ""}}}), HasSubstr("mount namespace"));
  EXPECT_THAT(refusal({.namespaces = {{"what", ""}}}), HasSubstr("unknown namespace"));
  EXPECT_THAT(refusal({.resources = {.devices = {{true, "q", {}, {}, ""}}}}),
              HasSubstr("device rule"));
  AnswerCollector collector = Collector();
  EXPECT_EQ(collector.Add("10-a", Adjust({.unsupported = {"scheduler"}})).error().message,
            "NRI plugin 10-a changes scheduler of container c, which this node does not support");
}

TEST(NriAdjustment, MountsKeepTheirTypePropagationAndOptions) {
  ContainerConfig config;
  ASSERT_TRUE(ApplyAdjustment({.mounts = {{"/scratch", "tmpfs", "tmpfs", {"size=1m", "rw"}},
                                          {"/shared", "", "/s", {"rbind", "rslave"}}}},
                              nullptr, config)
                  .ok());
  ASSERT_EQ(config.mounts.size(), 2u);
  EXPECT_EQ(config.mounts[0].type, "tmpfs");
  EXPECT_THAT(config.mounts[0].options, ElementsAre("size=1m"));
  EXPECT_EQ(config.mounts[1].type, "bind");
  EXPECT_EQ(config.mounts[1].propagation, MountPropagation::kHostToContainer);
}

TEST(NriAdjustment, TwoPluginsMayNotChangeTheSameField) {
  AnswerCollector collector = Collector();
  ASSERT_TRUE(
      collector.Add("10-a", Adjust({.env = {{"A", "x"}}, .resources = {.cpus = "0"}})).ok());
  const auto refused =
      collector.Add("20-b", Adjust({.annotations = {{"k", "v"}}, .env = {{"A", "y"}}}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "NRI plugins 10-a and 20-b both change environment variable A of container c");
  EXPECT_FALSE(collector.container().annotations.contains("k")) << "nothing of it was taken";
  EXPECT_EQ(collector.Add("20-b", Adjust({.resources = {.cpus = "1"}})).error().message,
            "NRI plugins 10-a and 20-b both change cpuset.cpus of container c");
  EXPECT_TRUE(collector.Add("20-b", Adjust({.resources = {.mems = "0"}})).ok()) << "another field";
  EXPECT_THAT(
      collector.Add("20-b", Adjust({.mounts = {{"relative", "bind", "/x", {}}}})).error().message,
      HasSubstr("not an absolute path"));
  const rpc::NriFieldOwners& owners = collector.owners().at("c1");
  EXPECT_EQ(owners.simple.at(rpc::NriField::kCpusetCpus), "10-a");
  EXPECT_EQ(owners.simple.at(rpc::NriField::kCpusetMems), "20-b");
  EXPECT_EQ(owners.compound.at(rpc::NriField::kEnv).at("A"), "10-a");
}

TEST(NriAdjustment, APluginThatRemovesAnEntryMaySetItAgain) {
  AnswerCollector collector = Collector();
  ASSERT_TRUE(collector
                  .Add("10-a", Adjust({.annotations = {{"k", "1"}},
                                       .mounts = {{"/m", "bind", "/1", {}}},
                                       .env = {{"X", "1"}},
                                       .args = {"a"}}))
                  .ok());
  // The removal counts first, in whichever order they come.
  const auto taken =
      collector.Add("20-b", Adjust({.annotations = {{"-k", ""}, {"k", "2"}},
                                    .mounts = {{"/m", "bind", "/2", {}}, {"-/m", "", "", {}}},
                                    .env = {{"X", "2"}, {"-X", ""}},
                                    .args = {"", "b"}}));
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  ContainerConfig config = Config();
  ASSERT_TRUE(ApplyAdjustment(collector.adjustment(), nullptr, config).ok());
  EXPECT_EQ(config.annotations.at("k"), "2");
  EXPECT_EQ(config.environment.back().value, "2");
  EXPECT_EQ(config.mounts.back().host_path, "/2");
  EXPECT_THAT(config.command, ElementsAre("b"));
  EXPECT_EQ(collector.owners().at("c1").simple.at(rpc::NriField::kArgs), "20-b");
}

TEST(NriAdjustment, HooksOfSeveralPluginsAreAdded) {
  AnswerCollector collector = Collector();
  for (const char* plugin : {"10-a", "20-b"}) {
    ASSERT_TRUE(collector.Add(plugin, Adjust({.hooks = {{"poststart", "/h", {}, {}, {}}}})).ok());
  }
  EXPECT_EQ(collector.adjustment().hooks.size(), 2u);
  EXPECT_EQ(collector.owners().at("c1").simple.at(rpc::NriField::kOciHooks), "10-a,20-b");
}

TEST(NriUpdates, UpdatesOfOneContainerAreMergedAndConflictsRefused) {
  AnswerCollector collector = Collector();
  ASSERT_TRUE(collector.Add("10-a", {{}, {{"c2", {.cpus = "0"}, true}}, {{"c3", "loud"}}}).ok());
  ASSERT_TRUE(collector.Add("20-b", {{}, {{"c2", {.mems = "0"}, false}}, {}}).ok());
  EXPECT_THAT(collector.updates(),
              ElementsAre(rpc::NriContainerUpdate{"c2", {.cpus = "0", .mems = "0"}, false}));
  EXPECT_EQ(collector.evictions().size(), 1u);
  EXPECT_THAT(collector.Add("30-c", {{}, {{"c2", {.cpus = "1"}, false}}, {}}).error().message,
              HasSubstr("10-a and 30-c both change cpuset.cpus of container c2"));
  EXPECT_TRUE(collector.Add("30-c", {{}, {{"c2", {.cpus = "1"}, true}}, {}}).ok());
  EXPECT_EQ(collector.updates()[0].resources.cpus, "0") << "a failure that is to be ignored";
  EXPECT_THAT(collector.Add("30-c", {{}, {{"c1", {.cpus = "1"}, true}}, {}}).error().message,
              HasSubstr("while it is being created"));
}

TEST(NriUpdates, AnUpdateOfTheContainerItselfChangesTheRequest) {
  AnswerCollector collector(Event::kUpdateContainer, DescribeContainer(Sandbox(), Config()),
                            {.memory_limit = 10, .cpu_shares = 2});
  ASSERT_TRUE(collector.Add("10-a", {{}, {{"c1", {.cpu_shares = 9}, false}}, {}}).ok());
  EXPECT_EQ(collector.resources().cpu_shares, 9) << "the next plugin sees it";
  EXPECT_EQ(collector.resources().memory_limit, 10);
  EXPECT_EQ(collector.own_changes(), rpc::NriResources{.cpu_shares = 9});
  EXPECT_TRUE(collector.updates().empty());
}

}  // namespace
}  // namespace drakkar::node
