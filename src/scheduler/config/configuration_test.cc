#include "scheduler/config/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/writer.h"
#include "base/text/text.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/cluster.h"

namespace drakkar::scheduler {
namespace {

using ::testing::HasSubstr;
using std::chrono::seconds;

constexpr char kHead[] =
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

std::string ErrorOf(std::string body, FeatureGates gates = {}) {
  const auto parsed = ParseConfiguration(kHead + body, gates);
  return parsed.ok() ? "" : parsed.error().message;
}

Configuration Parse(std::string body) {
  auto parsed = ParseConfiguration(kHead + body, FeatureGates());
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  return parsed.ok() ? *parsed : Configuration{};
}

TEST(SchedulerConfiguration, AnEmptyFileMeansTheDefaults) {
  const Configuration configuration = Parse("");
  ASSERT_EQ(configuration.profiles.size(), 1u);
  EXPECT_EQ(configuration.profiles[0].name, "default-scheduler");
  EXPECT_EQ(configuration.profiles[0].binding_timeout, seconds(600));
  EXPECT_EQ(configuration.profiles[0].filter_timeout, seconds(10));
  EXPECT_TRUE(configuration.leader_election.leader_elect);
  EXPECT_EQ(configuration.leader_election.lease_name, "kube-scheduler");
}

TEST(SchedulerConfiguration, ReadsWhatAFileSays) {
  const Configuration configuration = Parse(R"(
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
percentageOfNodesToScore: 30
clientConnection: {kubeconfig: /etc/kubeconfig, qps: 50, burst: 100}
leaderElection: {leaderElect: false, leaseDuration: 30s, renewDeadline: 20s, retryPeriod: 5s,
                 resourceName: mine, resourceNamespace: here, resourceLock: leases}
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  percentageOfNodesToScore: 50
  pluginConfig:
  - name: DynamicResources
    args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: DynamicResourcesArgs,
           filterTimeout: 5s, bindingTimeout: 90s}
  - name: NodeResourcesFit
    args:
      ignoredResources: [example.com/foo]
      ignoredResourceGroups: [vendor.io]
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}, {name: memory}]}
  - name: PodTopologySpread
    args: {defaultingType: List}
)");
  EXPECT_EQ(configuration.first_backoff, seconds(2));
  EXPECT_EQ(configuration.longest_backoff, seconds(20));
  EXPECT_EQ(configuration.kubeconfig, "/etc/kubeconfig");
  EXPECT_FALSE(configuration.leader_election.leader_elect);
  EXPECT_EQ(configuration.leader_election.retry_period, seconds(5));
  EXPECT_EQ(configuration.leader_election.lease_namespace, "here");
  ASSERT_EQ(configuration.profiles.size(), 2u);
  EXPECT_EQ(configuration.profiles[0].percentage_of_nodes_to_score, 30);
  const ProfileConfig& packing = configuration.profiles[1];
  EXPECT_EQ(packing.percentage_of_nodes_to_score, 50);
  EXPECT_EQ(packing.binding_timeout, seconds(90));
  EXPECT_EQ(packing.filter_timeout, seconds(5));
  EXPECT_TRUE(packing.fit.most_allocated);
  EXPECT_EQ(packing.fit.resources[0], (std::pair<std::string, std::int64_t>("cpu", 3)));
  EXPECT_EQ(configuration.remarks.size(), 3u) << "qps, burst and a plugin we do not have";
}

TEST(SchedulerConfiguration, RefusesWithOneSentenceThatNamesTheField) {
  const std::pair<const char*, const char*> cases[] = {
      {"profile: []", R"(unknown field "profile")"},
      {"profiles: [{schedulerName: a, pluginz: {}}]", R"(unknown field "profiles[0].pluginz")"},
      {"profiles: [{schedulerName: a}, {schedulerName: a}]",
       R"(profiles[1].schedulerName "a" is there twice)"},
      {"profiles: [{plugins: {score: {enabled: [{name: InterPodAffinity}]}}}]",
       "profiles[0].plugins.score.enabled: this scheduler has no plugin InterPodAffinity yet"},
      {"profiles: [{plugins: {score: {enabled: [{name: NodePorts}]}}}]",
       "profiles[0].plugins.score.enabled: NodePorts has no such extension point"},
      {"profiles: [{plugins: {filter: {disabled: [{name: Nope}]}}}]",
       R"(profiles[0].plugins.filter.disabled: there is no plugin "Nope")"},
      {"profiles: [{plugins: {filter: {disabled: [{name: DynamicResources}]}}}]",
       "profiles[0].plugins: DynamicResources can take part in preFilter, filter, reserve and "
       "preBind only together or not at all"},
      {"profiles: [{plugins: {bind: {disabled: [{name: '*'}]}}}]",
       "profiles[0].plugins.bind: no plugin is left that binds pods"},
      {"profiles: [{pluginConfig: [{name: DynamicResources, args: {bindingTimeout: 500ms}}]}]",
       "profiles[0].pluginConfig[0].args.bindingTimeout must be at least 1 second"},
      {"profiles: [{pluginConfig: [{name: DynamicResources, args: {filterTimeout: -1s}}]}]",
       "profiles[0].pluginConfig[0].args.filterTimeout must be zero or positive"},
      {"profiles: [{pluginConfig: [{name: DynamicResources, args: {bindingTimeout: 5}}]}]",
       "profiles[0].pluginConfig[0].args.bindingTimeout must be a duration such as 10s or 5m"},
      {"profiles: [{pluginConfig: [{name: NodeAffinity, args: {addedAffinity: {}}}]}]",
       "profiles[0].pluginConfig[0].args.addedAffinity is not supported by this scheduler"},
      {"podInitialBackoffSeconds: 5\npodMaxBackoffSeconds: 2",
       "podMaxBackoffSeconds must be at least podInitialBackoffSeconds"},
      {"extenders: [{urlPrefix: x}]", "extenders are not supported by this scheduler"},
      {"leaderElection: {leaseDuration: 5s}",
       "leader election: leaseDuration must be at least a second and longer than renewDeadline"},
      {"percentageOfNodesToScore: 101",
       "percentageOfNodesToScore must be a whole number from 0 to 100"},
  };
  for (const auto& [body, error] : cases) EXPECT_EQ(ErrorOf(body), error) << body;
  EXPECT_EQ(ErrorOf("profiles: [{pluginConfig: [{name: DynamicResources, args: {bindingTimeout: 5s}}]}]",
                    FeatureGates().With(Gate::kDRADeviceBindingConditions, false)),
            "profiles[0].pluginConfig[0].args.bindingTimeout cannot be set: "
            "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled");
  EXPECT_EQ(ParseConfiguration("kind: Other", {}).error().message,
            "apiVersion must be kubescheduler.config.k8s.io/v1");
}

TEST(SchedulerConfiguration, PluginsAreChosenPerPointAndForAll) {
  const auto enabled = [](std::string plugins) {
    const Configuration configuration = Parse("profiles: [{plugins: " + plugins + "}]");
    return api::WriteJson(ConfigurationToTree(configuration)->root()["profiles"].at(0)["plugins"]);
  };
  EXPECT_THAT(enabled("{score: {disabled: [{name: '*'}], enabled: [{name: NodeAffinity, weight: 7}]}}"),
              HasSubstr(R"("score":{"enabled":[{"name":"NodeAffinity","weight":7}]})"));
  const std::string only =
      enabled("{multiPoint: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit, weight: 5}]}, "
              "bind: {enabled: [{name: DefaultBinder}]}}");
  EXPECT_THAT(only, HasSubstr(R"("filter":{"enabled":[{"name":"NodeResourcesFit"}]})"));
  EXPECT_THAT(only, HasSubstr(R"("score":{"enabled":[{"name":"NodeResourcesFit","weight":5}]})"));
  EXPECT_THAT(only, HasSubstr(R"("preBind":{"enabled":[]})"));
  EXPECT_THAT(enabled("{multiPoint: {disabled: [{name: ImageLocality}, {name: DynamicResources}]}}"),
              HasSubstr(R"("reserve":{"enabled":[]})"));
}

TEST(Profiles, EachHasItsNameItsPluginsAndItsArguments) {
  TestCluster cluster;
  ProfileConfig packing{.name = "packing"};
  packing.fit.most_allocated = true;
  packing.plugins["NodeResourcesBalancedAllocation"] = {.points = 0, .weight = 0};
  ProfileConfig blind{.name = "blind"};
  blind.plugins["TaintToleration"] = {.points = 0, .weight = 0};
  cluster.profiles = {ProfileConfig{}, packing, blind};
  for (const char* node : {"n0", "n1"}) cluster.CreateNode(node);
  cluster.CreateNode("tainted", "{}", R"({"taints":[{"key":"k","value":"v","effect":"NoSchedule"}]})");
  cluster.StartScheduler();
  const auto create = [&](std::string name, std::string scheduler, std::string more = "") {
    cluster.Create("Pod", StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"schedulerName":")",
                                 scheduler, R"(","containers":[{"name":"c","image":"i","resources":)",
                                 R"({"requests":{"cpu":"1","memory":"1Gi"}}}])", more, "}}"));
    cluster.Settle();
    return cluster.NodeOf(name);
  };
  EXPECT_NE(create("spread-0", "default-scheduler"), create("spread-1", "default-scheduler"));
  const std::string first = create("pack-0", "packing");
  EXPECT_EQ(create("pack-1", "packing"), first);
  EXPECT_EQ(create("pack-2", "packing"), first);
  const char* to_tainted = R"(,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
    {"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["tainted"]}]}]}}})";
  EXPECT_EQ(create("careful", "default-scheduler", to_tainted), "");
  EXPECT_EQ(create("careless", "blind", to_tainted), "tainted");
  EXPECT_EQ(create("nobody", "another"), "");
  const std::string metrics = cluster.metrics().Text();
  for (const char* profile : {"default-scheduler", "packing", "blind"}) {
    EXPECT_THAT(metrics, HasSubstr(StrCat("scheduler_schedule_attempts_total{profile=\"", profile,
                                          "\",result=\"scheduled\"}")));
  }
}

TEST(Profiles, ShareTheDevicesOfTheCluster) {
  TestCluster cluster;
  cluster.profiles = {ProfileConfig{}, ProfileConfig{.name = "other"}};
  cluster.CreateNode("n1");
  cluster.CreateSlice("n1", 2);
  cluster.CreateClass();
  for (int i = 0; i < 3; ++i) cluster.CreateClaim(StrCat("c", i));
  cluster.CreatePodWithClaims("p0", {"c0"});
  cluster.CreatePodWithClaims("p1", {"c1"}, R"(,"schedulerName":"other")");
  cluster.CreatePodWithClaims("p2", {"c2"}, R"(,"schedulerName":"other")");
  cluster.StartScheduler();
  EXPECT_EQ(cluster.NodeOf("p0"), "n1");
  EXPECT_EQ(cluster.NodeOf("p1"), "n1");
  EXPECT_EQ(cluster.NodeOf("p2"), "");
  EXPECT_NE(cluster.DevicesOf("c0"), cluster.DevicesOf("c1"));
}

}  // namespace
}  // namespace drakkar::scheduler
