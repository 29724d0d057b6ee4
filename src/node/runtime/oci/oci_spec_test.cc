#include "node/runtime/oci/oci_spec.h"

#include "base/env/file_system.h"
#include "base/testing/memory_file_system.h"
#include "base/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node/runtime/json.h"
#include "node/runtime/oci/bundle.h"
#include "node/runtime/oci/cgroups.h"
#include "node/runtime/oci/conmon.h"
#include "node/runtime/oci/record.h"
#include "node/runtime/oci/user_lookup.h"

namespace drakkar::node {
namespace {

using api::Value;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

OciSpecInput Input() {
  OciSpecInput input;
  input.rootfs = "/r";
  input.arguments = {"/bin/sh"};
  input.environment = {"A=1"};
  input.cgroups_path = "/drakkar/pod1/c";
  input.namespaces = {{"mount", ""}, {"ipc", "/ns/ipc"}};
  return input;
}

api::TreePtr Write(const ContainerConfig& config, const OciSpecInput& input = Input(),
                   const HostLimits& limits = {}) {
  auto spec = WriteOciSpec(config, input, limits);
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().message);
  auto json = ParseJson(spec->json);
  EXPECT_TRUE(json.ok()) << spec->json;
  return *json;
}

Value MountAt(Value spec, std::string_view path) {
  for (const Value mount : spec["mounts"].elements()) {
    if (mount["destination"].str() == path) return mount;
  }
  return Value();
}

TEST(OciSpec, ContainsProcessRootNamespacesAndLimits) {
  ContainerConfig config;
  config.resources.memory_limit_bytes = 1 << 20;
  config.resources.cpu_shares = 512;
  config.resources.cpu_quota_us = 50'000;
  config.resources.cpu_period_us = 100'000;
  config.resources.pids_limit = 10;
  config.security.readonly_rootfs = true;
  const api::TreePtr tree = Write(config);
  const Value spec = tree->root();
  EXPECT_EQ(spec["root"]["path"].str(), "/r");
  EXPECT_TRUE(spec["root"]["readonly"].boolean());
  EXPECT_THAT(Strings(spec["process"]["args"]), ElementsAre("/bin/sh"));
  EXPECT_EQ(spec["process"]["cwd"].str(), "/");
  const Value linux_part = spec["linux"];
  EXPECT_EQ(linux_part["cgroupsPath"].str(), "/drakkar/pod1/c");
  EXPECT_EQ(linux_part["namespaces"].at(1)["path"].str(), "/ns/ipc");
  const Value resources = linux_part["resources"];
  EXPECT_EQ(resources.Entry("memory")["limit"].optional_integer(), 1 << 20);
  EXPECT_EQ(resources.Entry("cpu")["quota"].optional_integer(), 50'000);
  EXPECT_EQ(resources.Entry("pids")["limit"].optional_integer(), 10);
  EXPECT_FALSE(resources["devices"].at(0)["allow"].boolean()) << "deny all first";
}

TEST(OciSpec, ContainsAllCdiEdits) {
  ContainerConfig config;
  Mount mount;
  mount.host_path = "/host/file";
  mount.container_path = "/in/file";
  mount.options = {"ro", "nosuid", "bind"};
  config.mounts.push_back(mount);
  config.hooks.push_back({"createContainer", "/bin/hook", {"hook", "x"}, {"K=V"}, 5});
  CgroupDeviceRule rule;
  rule.type = 'c';
  rule.major = 195;
  rule.access = "rw";
  config.device_rules.push_back(rule);
  OciSpecInput input = Input();
  DeviceNode device;
  device.container_path = "/dev/x0";
  device.type = 'c';
  device.major = 10;
  device.minor = 7;
  device.permissions = "r";
  device.gid = 44;
  input.devices.push_back(device);
  input.additional_gids = {44};
  const api::TreePtr tree = Write(config, input);
  const Value spec = tree->root();
  const Value written = MountAt(spec, "/in/file");
  ASSERT_TRUE(written.exists());
  EXPECT_EQ(written["type"].str(), "bind");
  EXPECT_THAT(Strings(written["options"]), ElementsAre("ro", "nosuid", "bind", "rprivate"));
  const Value hook = spec["hooks"]["createContainer"].at(0);
  EXPECT_EQ(hook["path"].str(), "/bin/hook");
  EXPECT_EQ(hook["timeout"].optional_integer(), 5);
  const Value node = spec["linux"]["devices"].at(0);
  EXPECT_EQ(node["path"].str(), "/dev/x0");
  EXPECT_EQ(node["major"].optional_integer(), 10);
  EXPECT_EQ(node["gid"].optional_integer(), 44);
  const Value rules = spec["linux"]["resources"]["devices"];
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules.at(1)["access"].str(), "r");
  EXPECT_EQ(rules.at(2)["major"].optional_integer(), 195);
  EXPECT_FALSE(rules.at(2)["minor"].optional_integer()) << "not given: all";
  EXPECT_EQ(spec["process"]["user"]["additionalGids"].at(0).integer(), 44);
}

TEST(OciSpec, MountsParentsFirstAndLetsTheConfigReplaceDefaults) {
  ContainerConfig config;
  for (const char* path : {"/a/b/c", "/a", "/dev/shm", "/etc/hosts"}) {
    Mount mount;
    mount.host_path = "/h";
    mount.container_path = path;
    config.mounts.push_back(mount);
  }
  config.mounts[1].propagation = MountPropagation::kBidirectional;
  OciSpecInput input = Input();
  Mount hosts;
  hosts.host_path = "/sandbox/hosts";
  hosts.container_path = "/etc/hosts";
  input.sandbox_mounts.push_back(hosts);
  const api::TreePtr tree = Write(config, input);
  const Value spec = tree->root();
  std::vector<std::string> order;
  for (const Value mount : spec["mounts"].elements()) {
    if (mount["source"].str() == "/h") order.emplace_back(mount["destination"].str());
    EXPECT_NE(mount["source"].str(), "/sandbox/hosts");
  }
  EXPECT_THAT(order, ElementsAre("/a", "/dev/shm", "/etc/hosts", "/a/b/c"));
  EXPECT_EQ(spec["linux"]["rootfsPropagation"].str(), "rshared");
}

TEST(OciSpec, GrantsWhatTheHostHasAndWarnsAboutTheRest) {
  ContainerConfig config;
  config.security.privileged = true;
  config.resources.oom_score_adjust = -997;
  config.rlimits.push_back({"RLIMIT_NOFILE", 1000, 1000});
  HostLimits limits;
  limits.capabilities &= ~(std::uint64_t{1} << *CapabilityBit("SYS_RESOURCE"));
  limits.lowest_oom_score = 0;
  limits.may_raise_rlimits = false;
  limits.rlimits.push_back({"RLIMIT_NOFILE", 100, 100});
  auto spec = WriteOciSpec(config, Input(), limits);
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->warnings.size(), 3u);
  const api::TreePtr tree = *ParseJson(spec->json);
  const Value json = tree->root();
  const Value process = json["process"];
  EXPECT_FALSE(process["oomScoreAdj"].optional_integer());
  EXPECT_EQ(process["rlimits"].at(0)["hard"].optional_integer(), 100);
  const auto names = Strings(process["capabilities"]["bounding"]);
  EXPECT_THAT(names, Contains("CAP_SYS_ADMIN"));
  EXPECT_THAT(names, Not(Contains("CAP_SYS_RESOURCE")));
}

TEST(OciSpec, AddsAndDropsCapabilitiesAsKubernetesDoes) {
  ContainerConfig config;
  config.security.add_capabilities = {"net_admin", "CAP_SYS_TIME"};
  config.security.drop_capabilities = {"ALL"};
  const auto names = Strings(Write(config)->root()["process"]["capabilities"]["permitted"]);
  EXPECT_THAT(names, ElementsAre("CAP_NET_ADMIN", "CAP_SYS_TIME"));
  config.security.add_capabilities = {"FLY"};
  EXPECT_THAT(WriteOciSpec(config, Input(), {}).error().message, HasSubstr("\"FLY\""));
}

TEST(OciSpec, RefusesWhatItCannotExpress) {
  ContainerConfig config;
  OciSpecInput input = Input();
  input.arguments.clear();
  EXPECT_FALSE(WriteOciSpec(config, input, {}).ok());
  config.hooks.push_back({"sometime", "/x", {}, {}, {}});
  EXPECT_THAT(WriteOciSpec(config, Input(), {}).error().message, HasSubstr("hook"));
  ContainerConfig relative;
  relative.mounts.emplace_back();
  relative.mounts[0].container_path = "x";
  EXPECT_FALSE(WriteOciSpec(relative, Input(), {}).ok());
}

TEST(OciSpec, ExecReplacesOnlyArgumentsAndTerminal) {
  ContainerConfig config;
  config.tty = true;
  auto spec = WriteOciSpec(config, Input(), {});
  const Result<api::TreePtr> tree = ParseJson(*WriteExecProcess(spec->json, {"ls"}));
  ASSERT_TRUE(tree.ok());
  const Value process = (*tree)->root();
  EXPECT_THAT(Strings(process["args"]), ElementsAre("ls"));
  EXPECT_THAT(Strings(process["env"]), ElementsAre("A=1"));
  EXPECT_FALSE(process["terminal"].boolean());
  EXPECT_TRUE(process["capabilities"].exists());
}

TEST(Record, SurvivesARoundTrip) {
  ContainerRecord record;
  record.id = "c1";
  record.phase = Phase::kRunning;
  record.name = "main";
  record.pid = 12;
  record.pid_start_ticks = 345;
  record.started_at = WallTime(std::chrono::nanoseconds(1'700'000'000'123'456'789));
  record.labels = {{"a", "b\"c"}};
  record.message = "why\n";
  record.has_poststop_hooks = true;
  record.image_reference = "docker.io/library/a@sha256:2";
  record.user = {1000, 1001, {4, 5}};
  EXPECT_EQ(*ParseContainerRecord(WriteRecord(record)), record);
  SandboxRecord sandbox;
  sandbox.id = "s";
  sandbox.uid = "u";
  sandbox.host_ipc = true;
  sandbox.shares_processes = true;
  sandbox.sysctls = {{"net.x", "1"}};
  EXPECT_EQ(*ParseSandboxRecord(WriteRecord(sandbox)), sandbox);
  EXPECT_FALSE(ParseContainerRecord("").ok());
  EXPECT_FALSE(ParseContainerRecord("{}").ok());
  EXPECT_FALSE(ParseContainerRecord(R"({"version":2,"id":"x","phase":"running"})").ok());
}

TEST(UserLookup, ResolvesNamesNumbersAndGroups) {
  const char* passwd = "root:x:0:0:root:/root:/bin/sh\nguest:x:1000:100::/home/g:/bin/sh\n";
  const char* group = "users:x:100:\nvideo:x:44:root,guest\naudio:x:29:guest\n";
  auto guest = LookUpUser("guest", passwd, group);
  ASSERT_TRUE(guest.ok());
  EXPECT_EQ(guest->uid, 1000u);
  EXPECT_EQ(guest->gid, 100u);
  EXPECT_THAT(guest->additional_gids, ElementsAre(44u, 29u));
  EXPECT_EQ(LookUpUser("guest:video", passwd, group)->gid, 44u);
  EXPECT_EQ(LookUpUser("4711:5", passwd, group)->uid, 4711u);
  EXPECT_EQ(LookUpUser("4711:5", passwd, group)->gid, 5u);
  EXPECT_EQ(LookUpUser("", "", "")->uid, 0u);
  EXPECT_THAT(LookUpUser("nobody", passwd, group).error().message, HasSubstr("\"nobody\""));
  EXPECT_FALSE(LookUpUser("guest:none", passwd, group).ok());
}

TEST(Conmon, ReportsPidsAndReasons) {
  EXPECT_EQ(*ParseConmonReport("{\"data\": 77}\n"), 77);
  EXPECT_EQ(*ParseConmonReport("{\"pid\": 78}\n"), 78);
  auto failed = ParseConmonReport(
      R"({"data": -1, "message": "time=\"2026-01-01T00:00:00Z\" level=warning msg=\"x\"\ntime=\"...\" level=error msg=\"runc create failed: unable to start container process: exec: \\\"nope\\\": executable file not found in $PATH\"\n"})");
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(
      failed.error().message,
      "unable to start container process: exec: \"nope\": executable file not found in $PATH");
  EXPECT_FALSE(ParseConmonReport("nonsense").ok());
}

TEST(Conmon, SaysWhatToInstall) {
  MemoryFileSystem files;
  EXPECT_THAT(FindPrograms(files, "", true).error().message, HasSubstr("apt-get install conmon"));
  ASSERT_TRUE(files.MakeDirectories("/usr/bin", 0755).ok());
  ASSERT_TRUE(files.WriteFile("/usr/bin/conmon", "", 0755).ok());
  EXPECT_THAT(FindPrograms(files, "", true).error().message, HasSubstr("apt-get install runc"));
  ASSERT_TRUE(files.WriteFile("/usr/bin/crun", "", 0755).ok());
  EXPECT_TRUE(FindPrograms(files, "", true).ok());
  EXPECT_FALSE(FindPrograms(files, "", false).ok());
  EXPECT_THAT(FindPrograms(files, "crun", false).error().message, HasSubstr("use --runtime=runc"));
}

TEST(OciSpec, ChangesOverrideResources) {
  ContainerConfig config;
  config.resources.memory_limit_bytes = 1 << 20;
  config.resources.cpu_shares = 512;
  config.resources.cpuset_cpus = "0-3";
  config.resources.hugepage_limits_bytes = {{"2MB", 5}, {"1GB", 6}};
  config.cgroup_changes = {.memory_reservation_bytes = 7,
                           .memory_swap_bytes = -1,
                           .cpu_shares = 9,
                           .cpuset_cpus = "1",
                           .cpuset_mems = "0",
                           .pids_limit = 11,
                           .hugepage_limits_bytes = {{"2MB", 8}},
                           .unified = {{"memory.high", "12"}}};
  const api::TreePtr tree = Write(config);
  const Value resources = tree->root()["linux"]["resources"];
  EXPECT_EQ(resources["memory"]["limit"].integer(), 1 << 20);
  EXPECT_EQ(resources["memory"]["reservation"].integer(), 7);
  EXPECT_EQ(resources["memory"]["swap"].integer(), -1);
  EXPECT_EQ(resources["cpu"]["shares"].integer(), 9);
  EXPECT_EQ(resources["cpu"]["cpus"].str(), "1");
  EXPECT_EQ(resources["cpu"]["mems"].str(), "0");
  EXPECT_EQ(resources.Entry("pids")["limit"].integer(), 11);
  EXPECT_EQ(resources["unified"].Entry("memory.high").str(), "12");
  ASSERT_EQ(resources["hugepageLimits"].size(), 2u);
  EXPECT_EQ(resources["hugepageLimits"].at(1)["limit"].integer(), 8);
}

TEST(Cgroups, DistinguishesUnifiedFromPerControllerHierarchies) {
  MemoryFileSystem files;
  const Cgroups unified = Cgroups::Parse(
      files, "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
  EXPECT_TRUE(unified.is_unified());
  EXPECT_THAT(unified.roots(), ElementsAre("/sys/fs/cgroup"));
  const Cgroups hybrid = Cgroups::Parse(
      files,
      "31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
      "32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
      "33 30 0:29 / /var/lib/x/sys/fs/cgroup rw - cgroup cgroup rw,memory\n");
  EXPECT_FALSE(hybrid.is_unified());
  EXPECT_EQ(hybrid.roots().size(), 2u);
}

TEST(Cgroups, CountsOutOfMemoryKills) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.MakeDirectories("/sys/fs/cgroup/memory/p", 0755).ok());
  ASSERT_TRUE(files
                  .WriteFile("/sys/fs/cgroup/memory/p/memory.oom_control",
                             "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", 0644)
                  .ok());
  const Cgroups groups =
      Cgroups::Parse(files, "1 1 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  EXPECT_EQ(groups.OomKills("/p"), 2);
  EXPECT_EQ(groups.OomKills("/other"), 0);
}

TEST(Signals, HaveNamesAndNumbers) {
  EXPECT_EQ(SignalNumber("SIGTERM"), 15);
  EXPECT_EQ(SignalNumber("INT"), 2);
  EXPECT_EQ(SignalNumber("9"), 9);
  EXPECT_EQ(SignalNumber("SIGRTMIN+3"), SignalNumber("RTMIN").value() + 3);
  EXPECT_FALSE(SignalNumber("SIGNONE"));
  EXPECT_FALSE(SignalNumber("0"));
}

Value RuleOf(Value spec, const std::string& name) {
  for (const Value rule : spec["linux"]["seccomp"]["syscalls"].elements()) {
    const auto names = Strings(rule["names"]);
    if (std::find(names.begin(), names.end(), name) != names.end()) return rule;
  }
  return Value();
}

TEST(OciSpec, TheDefaultSeccompProfileAllowsProgramsButNotHostChanges) {
  ContainerConfig config;
  EXPECT_FALSE(Write(config)->root()["linux"]["seccomp"].exists()) << "unless it is asked for";
  config.security.seccomp = SeccompKind::kRuntimeDefault;
  const api::TreePtr tree = Write(config);
  const Value spec = tree->root();
  EXPECT_EQ(spec["linux"]["seccomp"]["defaultAction"].str(), "SCMP_ACT_ERRNO");
  for (const char* name : {"read", "openat", "execve", "futex", "socketpair", "epoll_wait"}) {
    ASSERT_TRUE(RuleOf(spec, name).exists()) << name;
    EXPECT_EQ(RuleOf(spec, name)["action"].str(), "SCMP_ACT_ALLOW") << name;
  }
  for (const char* name : {"mount", "unshare", "setns", "bpf", "keyctl", "add_key", "kexec_load",
                           "init_module", "open_by_handle_at", "reboot", "swapon", "userfaultfd",
                           "io_uring_setup", "pivot_root", "perf_event_open"}) {
    EXPECT_FALSE(RuleOf(spec, name).exists()) << name;
  }
  EXPECT_EQ(RuleOf(spec, "clone")["args"].at(0)["op"].str(), "SCMP_CMP_MASKED_EQ");
  EXPECT_EQ(RuleOf(spec, "clone3")["action"].str(), "SCMP_ACT_ERRNO");
  EXPECT_EQ(RuleOf(spec, "clone3")["errnoRet"].optional_integer(), ENOSYS);
}

TEST(OciSpec, CapabilitiesAllowTheirSystemCallsAndPrivilegedAllowsAll) {
  ContainerConfig config;
  config.security.seccomp = SeccompKind::kRuntimeDefault;
  config.security.add_capabilities = {"SYS_ADMIN"};
  EXPECT_TRUE(RuleOf(Write(config)->root(), "mount").exists());
  EXPECT_FALSE(RuleOf(Write(config)->root(), "clone")["args"].exists());
  // Capabilities that this process cannot grant do not allow system calls either.
  HostLimits limits;
  limits.capabilities = 0;
  EXPECT_FALSE(RuleOf(Write(config, Input(), limits)->root(), "mount").exists());
  config.security.privileged = true;
  EXPECT_FALSE(Write(config)->root()["linux"]["seccomp"].exists());
}

TEST(OciSpec, ALocalhostSeccompProfileIsUsedUnchanged) {
  ContainerConfig config;
  config.security.seccomp = SeccompKind::kLocalhost;
  config.security.seccomp_path = "/s/p.json";
  OciSpecInput input = Input();
  input.seccomp_profile =
      R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["mkdir"],"action":"SCMP_ACT_ERRNO"}]})";
  EXPECT_EQ(RuleOf(Write(config, input)->root(), "mkdir")["action"].str(), "SCMP_ACT_ERRNO");
  for (const char* bad : {"", "{}", "not json"}) {
    input.seccomp_profile = bad;
    auto spec = WriteOciSpec(config, input, {});
    ASSERT_FALSE(spec.ok()) << bad;
    EXPECT_THAT(spec.error().message, HasSubstr("/s/p.json"));
  }
}

}  // namespace
}  // namespace drakkar::node
