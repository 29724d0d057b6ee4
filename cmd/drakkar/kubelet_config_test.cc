#include "cmd/drakkar/kubelet_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/memory_file_system.h"
#include "base/text/text.h"
#include "cli/testing/fake_console.h"
#include "telemetry/log/log.h"

namespace drakkar::cmd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class KubeletConfigTest : public ::testing::Test {
 protected:
  KubeletConfigTest() {
    SetLogSink([this](std::string_view line) { logged_.emplace_back(line); });
    cli::App app("drakkar", "");
    cli::Command command;
    command.name = "read";
    command.flags = KubeletConfigFlags();
    command.run = [&](const cli::Arguments& given, cli::Console&) {
      arguments_ = given;
      return 0;
    };
    app.Add(command);
    cli::testing::FakeConsole console;
    EXPECT_EQ(app.Run({"read", "--config", "/k.yaml"}, console), 0);
  }
  ~KubeletConfigTest() override {
    SetLogSink([](std::string_view) {});
  }

  Result<KubeletSettings> Read(std::string_view members) {
    MemoryFileSystem files;
    EXPECT_TRUE(files
                    .WriteFile("/k.yaml",
                               StrCat("apiVersion: kubelet.config.k8s.io/v1beta1\n"
                                      "kind: KubeletConfiguration\n",
                                      members),
                               0644)
                    .ok());
    return ReadKubeletSettings(arguments_, files);
  }
  std::string ErrorOf(std::string_view members) {
    const auto settings = Read(members);
    return settings.ok() ? "(accepted)" : settings.error().message;
  }

  cli::Arguments arguments_;
  std::vector<std::string> logged_;
};

TEST_F(KubeletConfigTest, AcceptsWhatAKubeletAcceptsAndLogsIgnoredSettingsOnce) {
  const auto settings = Read(R"(
featureGates: {MemoryQoS: true, ContainerRestartRules: false}
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true, cacheTTL: 2m0s}
  x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}
authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 0s, cacheUnauthorizedTTL: 0s}}
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
crashLoopBackOff: {}
evictionHard: {memory.available: 100Mi, nodefs.available: 10%}
healthzPort: 10248
imageMaximumGCAge: 0s
logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: 0}}, verbosity: 0}
memorySwap: {}
memoryThrottlingFactor: 0.9
podPidsLimit: -1
registerWithTaints: [{key: a, value: b, effect: NoSchedule}]
reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]
shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 30}]
staticPodPath: /etc/kubernetes/manifests
staticPodURLHeader: {X: [a, b]}
tracing: {endpoint: localhost:4317, samplingRatePerMillion: 10}
userNamespaces: {idsPerPod: 65536}
kubeReserved: null
)");
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->feature_gates, "ContainerRestartRules=false");
  ASSERT_THAT(logged_, SizeIs(1));
  EXPECT_THAT(logged_[0], AllOf(HasSubstr("authentication, authorization, cgroupDriver"),
                                HasSubstr("MemoryQoS"), Not(HasSubstr("kubeReserved")),
                                Not(HasSubstr("ContainerRestartRules"))));
}

TEST_F(KubeletConfigTest, ReadsEvictionThresholdsAndReservations) {
  const auto settings = Read(R"(
evictionHard: {memory.available: 1Gi}
evictionSoft: {nodefs.available: 15%}
evictionSoftGracePeriod: {nodefs.available: 2m}
evictionPressureTransitionPeriod: 30s
evictionMaxPodGracePeriod: 60
systemReserved: {cpu: 500m, memory: 1Gi}
kubeReserved: {cpu: "1", ephemeral-storage: 1Gi}
maxPods: 250
)");
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->eviction.hard.size(), 1u);
  EXPECT_EQ(settings->eviction.soft.at("nodefs.available"), "15%");
  EXPECT_EQ(settings->eviction.transition_period, std::chrono::seconds(30));
  EXPECT_EQ(settings->eviction.max_pod_grace_seconds, 60);
  EXPECT_EQ(settings->resources.reserved().cpu_milli, 1'500);
  EXPECT_EQ(settings->resources.reserved().memory_bytes, 1 << 30);
  EXPECT_EQ(settings->resources.reserved().ephemeral_storage_bytes, 1 << 30);
  EXPECT_EQ(settings->max_pods, 250);
  EXPECT_THAT(logged_, IsEmpty());
}

TEST_F(KubeletConfigTest, WithoutThresholdsAKubeletsDefaultsApply) {
  EXPECT_EQ(Read("maxPods: 5\n")->eviction.hard, node::EvictionSettings::DefaultHard());
  EXPECT_EQ(Read("evictionHard: {pid.available: 10%}\nmergeDefaultEvictionSettings: true\n")
                ->eviction.hard.size(),
            6u);
}

TEST_F(KubeletConfigTest, RejectsThresholdsAndReservationsThatMeanNothing) {
  EXPECT_THAT(ErrorOf("evictionHard: {memory.free: 1Gi}\n"), HasSubstr("memory.free"));
  EXPECT_THAT(ErrorOf("evictionSoft: {memory.available: 1Gi}\n"), HasSubstr("grace period"));
  EXPECT_THAT(ErrorOf("systemReserved: {gpu: 1}\n"), HasSubstr("systemReserved.gpu"));
  EXPECT_THAT(ErrorOf("kubeReserved: {cpu: lots}\n"), HasSubstr("kubeReserved.cpu"));
}

TEST_F(KubeletConfigTest, LogsNothingIfEverySettingHasAnEffect) {
  EXPECT_EQ(ErrorOf("cpuManagerPolicy: static\n"), "(accepted)");
  EXPECT_THAT(logged_, IsEmpty());
}

TEST_F(KubeletConfigTest, ReadsCgroupsCpusAndSwap) {
  const auto settings = Read(R"(
cgroupRoot: pods/
systemReserved: {memory: 1Gi, pid: "100"}
kubeReserved: {cpu: 200m}
systemReservedCgroup: /system
enforceNodeAllocatable: [pods, system-reserved]
memorySwap: {swapBehavior: LimitedSwap}
cpuCFSQuotaPeriod: 10ms
singleProcessOOMKill: true
cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true", distribute-cpus-across-numa: "false"}
cpuManagerReconcilePeriod: 3s
)");
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  const ResourceSettings& resources = settings->resources;
  EXPECT_EQ(resources.layout.Pods(), "/pods/kubepods");
  EXPECT_TRUE(resources.static_cpus && resources.full_cores_only && resources.limited_swap);
  EXPECT_EQ(resources.cpu_reconcile_every, std::chrono::seconds(3));
  const node::NodeResources made =
      MakeNodeResources(resources, {.cpu_count = 4, .memory_bytes = 8ll << 30}, 1000, 7, {});
  EXPECT_EQ(made.pods, (node::CgroupShare{3800, 7ll << 30, 900}));
  EXPECT_EQ(made.limits.cpu_period_us, 10'000);
  EXPECT_EQ(made.limits.pids_per_pod, 7);
  EXPECT_FALSE(made.limits.kill_all_on_oom);
  ASSERT_THAT(made.reserved, SizeIs(1));
  EXPECT_EQ(made.reserved[0].path, "/system");
  EXPECT_EQ(made.reserved[0].share, (node::CgroupShare{0, 1ll << 30, 100}));
  EXPECT_THAT(logged_, IsEmpty());
}

TEST_F(KubeletConfigTest, ReservedCpusReplaceTheOtherReservations) {
  const auto settings =
      Read("reservedSystemCPUs: 0-1\nkubeReserved: {cpu: 3500m}\nenforceNodeAllocatable: [none]\n");
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->resources.reserved().cpu_milli, 2000);
  EXPECT_EQ(settings->resources.reserved_cpus.ToString(), "0-1");
  const node::NodeResources made = MakeNodeResources(
      settings->resources, {.cpu_count = 4, .memory_bytes = 8ll << 30}, 1000, 0, {});
  EXPECT_EQ(made.pods, (node::CgroupShare{4000, 8ll << 30, 0})) << "nothing is enforced";
}

TEST_F(KubeletConfigTest, RejectsResourceSettingsThatContradictEachOther) {
  const std::pair<const char*, const char*> cases[] = {
      {"enforceNodeAllocatable: [all]\n", "\"all\" is not one of"},
      {"enforceNodeAllocatable: [none, pods]\n", "none excludes"},
      {"enforceNodeAllocatable: [kube-reserved]\n", "needs kubeReservedCgroup"},
      {"cgroupsPerQOS: false\nenforceNodeAllocatable: [pods]\n", "needs cgroupsPerQOS"},
      {"cgroupRoot: /a/../b\n", "cgroupRoot: must be a plain path"},
      {"memorySwap: {swapBehavior: Much}\n", "swapBehavior"},
      {"cpuCFSQuotaPeriod: 2s\n", "between 1ms and 1s"},
      {"cpuManagerPolicy: dynamic\n", "must be none or static"},
      {"reservedSystemCPUs: 3-1\n", "reservedSystemCPUs: invalid list"},
      {"cpuManagerPolicyOptions: {full-pcpus-only: \"true\"}\n", "needs cpuManagerPolicy static"},
      {"cpuManagerPolicy: static\ncpuManagerPolicyOptions: {align-by-socket: \"true\"}\n",
       "this node has only"},
      {"shutdownGracePeriod: 10s\nshutdownGracePeriodCriticalPods: 20s\n", "must not exceed"},
      {"shutdownGracePeriod: 10ms\n", "at least 1s"},
      {"shutdownGracePeriod: 10s\nshutdownGracePeriodByPodPriority: [{priority: 0, "
       "shutdownGracePeriodSeconds: 1}]\n",
       "cannot be combined"},
  };
  for (const auto& [settings, why] : cases) {
    EXPECT_THAT(ErrorOf(settings), HasSubstr(why)) << settings;
  }
}

TEST_F(KubeletConfigTest, ReadsHowTheNodeRegistersLogsAndPulls) {
  const auto settings = Read(R"(
nodeStatusUpdateFrequency: 4s
nodeStatusReportFrequency: 1m
nodeLeaseDurationSeconds: 20
nodeStatusMaxImages: 7
registerWithTaints: [{key: a, value: b, effect: NoSchedule}]
providerID: cloud://1
registerNode: false
containerLogMaxSize: 1Mi
containerLogMaxFiles: 3
containerLogMonitorInterval: 5s
serializeImagePulls: false
maxParallelImagePulls: 3
registryPullQPS: 2
registryBurst: 4
crashLoopBackOff: {maxContainerRestartPeriod: 30s}
podLogsDir: /logs
podsPerCore: 10
imageMaximumGCAge: 24h
memoryManagerPolicy: None
topologyManagerPolicy: none
topologyManagerScope: pod
)");
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  const AgentSettings& agent = settings->agent;
  EXPECT_EQ(agent.registration.status_every, std::chrono::seconds(4));
  EXPECT_EQ(agent.registration.heartbeat_every, std::chrono::minutes(1));
  EXPECT_EQ(agent.registration.lease_seconds, 20);
  EXPECT_EQ(agent.registration.max_images, 7);
  ASSERT_THAT(agent.registration.taints, SizeIs(1));
  EXPECT_EQ(agent.registration.taints[0].effect, "NoSchedule");
  EXPECT_EQ(agent.registration.provider_id, "cloud://1");
  EXPECT_FALSE(agent.registration.creates_node);
  EXPECT_EQ(agent.logs.max_bytes, 1u << 20);
  EXPECT_EQ(agent.logs.max_files, 3u);
  EXPECT_EQ(agent.logs.check_every, std::chrono::seconds(5));
  EXPECT_EQ(agent.pulls.max_parallel, 3u);
  EXPECT_EQ(agent.pulls.per_second, 2);
  EXPECT_EQ(agent.pulls.burst, 4);
  EXPECT_EQ(agent.longest_crash_backoff, std::chrono::seconds(30));
  EXPECT_EQ(agent.pod_logs_directory, "/logs");
  EXPECT_EQ(settings->image_collection.max_age, std::chrono::hours(24));
  EXPECT_EQ(MaxPods(agent, 0, {.cpu_count = 4}), 40);
  EXPECT_EQ(MaxPods(agent, 30, {.cpu_count = 4}), 30);
  EXPECT_THAT(logged_, IsEmpty());
  EXPECT_EQ(Read("nodeStatusUpdateFrequency: 20s\n")->agent.registration.heartbeat_every,
            std::chrono::seconds(20))
      << "as in a kubelet";
  EXPECT_EQ(Read("serializeImagePulls: true\n")->agent.pulls.max_parallel, 1u);
  EXPECT_EQ(Read("maxPods: 5\n")->agent.pulls.max_parallel, 0u);
}

TEST_F(KubeletConfigTest, RejectsAgentSettingsThatMeanNothing) {
  const std::pair<const char*, const char*> cases[] = {
      {"memoryManagerPolicy: Static\n", "memoryManagerPolicy: this node has only None"},
      {"topologyManagerPolicy: best-effort\n", "topologyManagerPolicy: this node has only none"},
      {"topologyManagerScope: node\n", "must be container or pod"},
      {"containerLogMaxFiles: 1\n", "containerLogMaxFiles: must be between 2"},
      {"containerLogMaxSize: lots\n", "containerLogMaxSize"},
      {"containerLogMaxSize: -1Mi\n", "containerLogMaxSize: must be greater than zero"},
      {"containerLogMonitorInterval: 1s\n", "containerLogMonitorInterval: must be at least 3s"},
      {"maxParallelImagePulls: 2\n", "needs serializeImagePulls: false"},
      {"maxParallelImagePulls: 0\n", "must be greater than zero"},
      {"registryPullQPS: -1\n", "registryPullQPS: must not be negative"},
      {"nodeLeaseDurationSeconds: -1\n", "nodeLeaseDurationSeconds"},
      {"nodeStatusMaxImages: -2\n", "nodeStatusMaxImages"},
      {"nodeStatusUpdateFrequency: 1ms\n", "must be at least 1s"},
      {"registerWithTaints: [{key: a, effect: Never}]\n", "registerWithTaints"},
      {"crashLoopBackOff: {maxContainerRestartPeriod: 10m}\n", "between 1s and 300s"},
      {"podLogsDir: logs\n", "podLogsDir: must be an absolute path"},
      {"imageMinimumGCAge: 5m\nimageMaximumGCAge: 1m\n", "greater than imageMinimumGCAge"},
  };
  for (const auto& [settings, why] : cases) {
    EXPECT_THAT(ErrorOf(settings), HasSubstr(why)) << settings;
  }
}

TEST_F(KubeletConfigTest, ReadsShutdownPeriods) {
  EXPECT_THAT(
      Read("shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n")->shutdown_periods,
      ElementsAre(node::ShutdownPeriod{0, 20}, node::ShutdownPeriod{2'000'000'000, 10}));
  EXPECT_THAT(Read("shutdownGracePeriodByPodPriority: [{priority: 100, shutdownGracePeriodSeconds: "
                   "5}, {priority: -1, shutdownGracePeriodSeconds: 7}]\n")
                  ->shutdown_periods,
              ElementsAre(node::ShutdownPeriod{-1, 7}, node::ShutdownPeriod{100, 5}));
  EXPECT_THAT(Read("maxPods: 5\n")->shutdown_periods, IsEmpty());
}

TEST_F(KubeletConfigTest, RejectsMisspeltFieldsWithTheirPosition) {
  EXPECT_EQ(ErrorOf("maxpods: 10\n"),
            "/k.yaml: maxpods: no such field; the correct spelling is maxPods: line 3, column 1");
  EXPECT_EQ(ErrorOf("authentication:\n  webhook:\n    enable: true\n"),
            "/k.yaml: authentication.webhook.enable: no such field: line 5, column 5");
  EXPECT_EQ(ErrorOf("registerWithTaints:\n- {key: a, efect: NoSchedule}\n"),
            "/k.yaml: registerWithTaints.0.efect: no such field: line 4, column 12");
}

TEST_F(KubeletConfigTest, RejectsWrongTypesWithTheirPosition) {
  EXPECT_EQ(ErrorOf("port: \"10250\"\n"),
            "/k.yaml: port: must be a 32-bit integer: line 3, column 1");
  EXPECT_EQ(ErrorOf("port: 4294967296\n"),
            "/k.yaml: port: must be a 32-bit integer: line 3, column 1");
  EXPECT_EQ(ErrorOf("syncFrequency: 60\n"),
            "/k.yaml: syncFrequency: must be a duration such as \"1m30s\": line 3, column 1");
  EXPECT_EQ(ErrorOf("clusterDNS: 10.96.0.10\n"),
            "/k.yaml: clusterDNS: must be a list: line 3, column 1");
  EXPECT_EQ(ErrorOf("clusterDNS:\n- 10.96.0.10\n- 7\n"),
            "/k.yaml: clusterDNS.1: must be a string: line 5, column 3");
  EXPECT_EQ(ErrorOf("evictionHard:\n  memory.available: 5\n"),
            "/k.yaml: evictionHard.memory.available: must be a string: line 4, column 3");
  EXPECT_EQ(ErrorOf("featureGates: {A: 1}\n"),
            "/k.yaml: featureGates.A: must be true or false: line 3, column 16");
  EXPECT_EQ(ErrorOf("memorySwap: no\n"), "/k.yaml: memorySwap: must be a map: line 3, column 1");
}

TEST_F(KubeletConfigTest, RejectsOtherKindsAndVersions) {
  MemoryFileSystem files;
  ASSERT_TRUE(
      files.WriteFile("/k.yaml", "apiVersion: kubelet.config.k8s.io/v1alpha1\n", 0644).ok());
  EXPECT_EQ(ReadKubeletSettings(arguments_, files).error().message,
            "/k.yaml: apiVersion: must be kubelet.config.k8s.io/v1beta1: line 1, column 1");
}

}  // namespace
}  // namespace drakkar::cmd
