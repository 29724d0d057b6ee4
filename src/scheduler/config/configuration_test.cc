#include "scheduler/config/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/writer.h"
#include "base/text/text.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/plugins/dynamic_resources/dynamic_resources_args.h"
#include "scheduler/plugins/node_resources/node_resources_args.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/cluster.h"

namespace drakkar::scheduler {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

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
  const auto args = configuration.profiles[0].ArgsOf<DynamicResourcesArgs>("DynamicResources");
  EXPECT_EQ(args.binding_timeout, seconds(600));
  EXPECT_EQ(args.filter_timeout, seconds(10));
  EXPECT_TRUE(configuration.leader_election.leader_elect);
  EXPECT_EQ(configuration.leader_election.lease_name, "kube-scheduler");
}

TEST(SchedulerConfiguration, ReadsTheSettingsOfAFile) {
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
    args: {defaultingType: List, defaultConstraints: [{maxSkew: 1}]}
  - name: VolumeBinding
    args: {bindTimeoutSeconds: 60}
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
  const auto timeouts = packing.ArgsOf<DynamicResourcesArgs>("DynamicResources");
  EXPECT_EQ(timeouts.binding_timeout, seconds(90));
  EXPECT_EQ(timeouts.filter_timeout, seconds(5));
  const auto fit = packing.ArgsOf<NodeResourcesFitArgs>("NodeResourcesFit");
  EXPECT_TRUE(fit.scoring.most_allocated);
  EXPECT_EQ(fit.scoring.resources[0], (std::pair<std::string, std::int64_t>("cpu", 3)));
  EXPECT_EQ(configuration.remarks.size(), 4u)
      << "qps, burst, defaultConstraints and an unsupported plugin";
}

TEST(SchedulerConfiguration, RejectsErrorsWithOneSentenceThatNamesTheField) {
  const std::pair<const char*, const char*> cases[] = {
      {"profile: []", R"(unknown field "profile")"},
      {"profiles: [{schedulerName: a, pluginz: {}}]", R"(unknown field "profiles[0].pluginz")"},
      {"profiles: [{schedulerName: a}, {schedulerName: a}]",
       R"(profiles[1].schedulerName "a" is already in use)"},
      {"profiles: [{plugins: {score: {enabled: [{name: VolumeBinding}]}}}]",
       "profiles[0].plugins.score.enabled: plugin VolumeBinding is not supported by this "
       "scheduler"},
      {"profiles: [{plugins: {score: {enabled: [{name: NodePorts}]}}}]",
       "profiles[0].plugins.score.enabled: NodePorts has no such extension point"},
      {"profiles: [{plugins: {filter: {disabled: [{name: Nope}]}}}]",
       R"(profiles[0].plugins.filter.disabled: unknown plugin "Nope")"},
      {"profiles: [{plugins: {filter: {disabled: [{name: DynamicResources}]}}}]",
       "profiles[0].plugins: DynamicResources must be enabled at all of preFilter, filter, "
       "reserve and preBind, or at none of them"},
      {"profiles: [{plugins: {bind: {disabled: [{name: '*'}]}}}]",
       "profiles[0].plugins.bind: at least one plugin that binds pods must be enabled"},
      {"profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultingType: Own}}]}]",
       "profiles[0].pluginConfig[0].args.defaultingType must be System or List, not \"Own\""},
      {"profiles: [{pluginConfig: [{name: DynamicResources, args: {bindingTimeout: 500ms}}]}]",
       "profiles[0].pluginConfig[0].args.bindingTimeout must be at least 1 second"},
      {"profiles: [{pluginConfig: [{name: DynamicResources, args: {filterTimeout: -1s}}]}]",
       "profiles[0].pluginConfig[0].args.filterTimeout must be zero or positive"},
      {"profiles: [{pluginConfig: [{name: DynamicResources, args: {bindingTimeout: 5}}]}]",
       "profiles[0].pluginConfig[0].args.bindingTimeout must be a duration such as 10s or 5m"},
      {"profiles: [{pluginConfig: [{name: NodeAffinity, args: {addedAffinity: {podAffinity: "
       "{}}}}]}]",
       R"(unknown field "profiles[0].pluginConfig[0].args.addedAffinity.podAffinity")"},
      {"profiles: [{pluginConfig: [{name: NodeAffinity, args: {addedAffinity: "
       "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}}]}]",
       "profiles[0].pluginConfig[0].args.addedAffinity."
       "requiredDuringSchedulingIgnoredDuringExecution."
       "nodeSelectorTerms must have at least one term"},
      {"profiles: [{pluginConfig: [{name: NodeAffinity, args: {addedAffinity: "
       "{preferredDuringSchedulingIgnoredDuringExecution: [{weight: 5, preference: "
       "{matchExpressions: [{key: a, operator: Like, values: [b]}]}}]}}}]}]",
       "profiles[0].pluginConfig[0].args.addedAffinity."
       "preferredDuringSchedulingIgnoredDuringExecution[0]."
       "preference.matchExpressions[0].operator must be In, NotIn, Exists, DoesNotExist, Gt or Lt"},
      {"profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: "
       "{type: RequestedToCapacityRatio}}}]}]",
       "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio is "
       "required for this type"},
      {"profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: "
       "RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 50, score: 1}, "
       "{utilization: 50, score: 2}]}}}}]}]",
       "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape[1]."
       "utilization "
       "must be greater than that of the previous point"},
      {"profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: "
       "MostAllocated, "
       "requestedToCapacityRatio: {shape: [{utilization: 50, score: 1}]}}}}]}]",
       "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio may only "
       "be set for type RequestedToCapacityRatio"},
      {"podInitialBackoffSeconds: 5\npodMaxBackoffSeconds: 2",
       "podMaxBackoffSeconds must be at least podInitialBackoffSeconds"},
      {"extenders: [{urlPrefix: x}]", "extenders are not supported by this scheduler"},
      {"leaderElection: {leaseDuration: 5s}",
       "leader election: leaseDuration must be at least a second and longer than renewDeadline"},
      {"percentageOfNodesToScore: 101",
       "percentageOfNodesToScore must be a whole number from 0 to 100"},
  };
  for (const auto& [body, error] : cases) EXPECT_EQ(ErrorOf(body), error) << body;
  EXPECT_EQ(
      ErrorOf("profiles: [{pluginConfig: [{name: DynamicResources, args: {bindingTimeout: 5s}}]}]",
              FeatureGates().With(Gate::kDRADeviceBindingConditions, false)),
      "profiles[0].pluginConfig[0].args.bindingTimeout cannot be set: "
      "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled");
  EXPECT_EQ(ParseConfiguration("kind: Other", {}).error().message,
            "apiVersion must be kubescheduler.config.k8s.io/v1");
}

TEST(SchedulerConfiguration, PluginsAreChosenPerPointOrForAllPoints) {
  const auto enabled = [](std::string plugins) {
    const Configuration configuration = Parse("profiles: [{plugins: " + plugins + "}]");
    return api::WriteJson(ConfigurationToTree(configuration)->root()["profiles"].at(0)["plugins"]);
  };
  EXPECT_THAT(
      enabled("{score: {disabled: [{name: '*'}], enabled: [{name: NodeAffinity, weight: 7}]}}"),
      HasSubstr(R"("score":{"enabled":[{"name":"NodeAffinity","weight":7}],)"));
  const std::string only = enabled(
      "{multiPoint: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit, weight: 5}]}, "
      "bind: {enabled: [{name: DefaultBinder}]}}");
  EXPECT_THAT(only, HasSubstr(R"("filter":{"enabled":[{"name":"NodeResourcesFit"}],)"));
  EXPECT_THAT(only, HasSubstr(R"("score":{"enabled":[{"name":"NodeResourcesFit","weight":5}],)"));
  EXPECT_THAT(only, HasSubstr(R"("preBind":{"enabled":[],)"));
  EXPECT_THAT(
      enabled("{multiPoint: {disabled: [{name: ImageLocality}, {name: DynamicResources}]}}"),
      HasSubstr(R"("reserve":{"enabled":[],)"));
}

TEST(SchedulerConfiguration, ArgumentsOfAPluginMayBeGivenOnlyOnce) {
  EXPECT_THAT(ErrorOf(R"(
profiles:
- pluginConfig:
  - {name: DynamicResources, args: {bindingTimeout: 60s}}
  - {name: NodeResourcesFit, args: {ignoredResources: [example.com/x]}}
  - {name: DynamicResources, args: {bindingTimeout: 70s}}
)"),
              HasSubstr("\"DynamicResources\" must not be listed twice"));
}

TEST(SchedulerConfiguration, NothingIsIgnoredSilently) {
  const Configuration configuration = Parse(R"(
parallelism: 8
enableProfiling: true
delayCacheUntilActive: true
clientConnection: {contentType: application/vnd.kubernetes.protobuf, qps: 5, burst: 9}
)");
  EXPECT_THAT(configuration.remarks, ::testing::UnorderedElementsAre(
                                         HasSubstr("parallelism has no effect"),
                                         HasSubstr("enableProfiling has no effect"),
                                         HasSubstr("delayCacheUntilActive has no effect"),
                                         HasSubstr("clientConnection.contentType has no effect"),
                                         HasSubstr("clientConnection.qps has no effect"),
                                         HasSubstr("clientConnection.burst has no effect")));
}

TEST(SchedulerConfiguration, PluginsRunInTheOrderOfTheLists) {
  const auto filters = [](std::string plugins) {
    const Configuration configuration = Parse("profiles: [{plugins: " + plugins + "}]");
    std::string names;
    const api::TreePtr tree = ConfigurationToTree(configuration);
    for (api::Value each :
         tree->root()["profiles"].at(0)["plugins"]["filter"]["enabled"].elements()) {
      names += StrCat(names.empty() ? "" : " ", each["name"].str());
    }
    return names;
  };
  const std::string ours =
      "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit "
      "PodTopologySpread InterPodAffinity NodeDeclaredFeatures DynamicResources";
  EXPECT_EQ(filters("{}"), ours);
  EXPECT_EQ(filters("{multiPoint: {enabled: [{name: DynamicResources}]}}"), ours)
      << "one that is enabled anyway keeps its place";
  EXPECT_EQ(filters("{multiPoint: {disabled: [{name: NodeName}], enabled: [{name: NodeName}]}}"),
            "NodeUnschedulable TaintToleration NodeAffinity NodePorts NodeResourcesFit "
            "PodTopologySpread InterPodAffinity NodeDeclaredFeatures DynamicResources NodeName");
  EXPECT_EQ(filters("{filter: {enabled: [{name: NodeResourcesFit}, {name: NodeName}]}}"),
            "NodeResourcesFit NodeName NodeUnschedulable TaintToleration NodeAffinity NodePorts "
            "PodTopologySpread InterPodAffinity NodeDeclaredFeatures DynamicResources");
  EXPECT_EQ(
      filters(
          "{multiPoint: {disabled: [{name: '*'}], enabled: [{name: DefaultBinder}, "
          "{name: NodePorts}, {name: NodeName}]}, filter: {enabled: [{name: TaintToleration}]}}"),
      "NodePorts NodeName TaintToleration");
}

TEST(Profiles, TheFirstPluginThatRejectsANodeProvidesTheReason) {
  const char* affine = R"(,"nodeSelector":{"disk":"ssd"})";
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "0/1 nodes are available: 1 node(s) had untolerated taint {k: }."},
      {"{filter: {enabled: [{name: NodeAffinity}]}}",
       "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."}};
  for (const auto& [plugins, expected] : cases) {
    TestCluster cluster;
    cluster.profiles = Parse(StrCat("profiles: [{plugins: ", plugins, "}]")).profiles;
    cluster.CreateNode("n", "{}", R"({"taints":[{"key":"k","effect":"NoSchedule"}]})");
    cluster.StartScheduler();
    cluster.CreatePod("p", affine);
    cluster.Settle();
    EXPECT_EQ(cluster.ConditionMessage("p"), expected) << plugins;
  }
}

TEST(Profiles, AnAddedAffinityAppliesToEveryPodOfTheProfile) {
  TestCluster cluster;
  cluster.profiles = Parse(R"(
profiles:
- schedulerName: default-scheduler
- schedulerName: zoned
  pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]
        preferredDuringSchedulingIgnoredDuringExecution:
        - {weight: 10, preference: {matchExpressions: [{key: disk, operator: Exists}]}}
)")
                         .profiles;
  cluster.CreateNode("elsewhere", R"({"zone":"b","disk":"ssd"})");
  cluster.CreateNode("plain", R"({"zone":"a"})");
  cluster.CreateNode("better", R"({"zone":"a","disk":"ssd"})");
  cluster.StartScheduler();
  for (int i = 0; i < 3; ++i) {
    cluster.CreatePod(StrCat("p", i), R"(,"schedulerName":"zoned")");
    cluster.Settle();
    EXPECT_EQ(cluster.NodeOf(StrCat("p", i)), "better");
  }
  cluster.CreatePod("both", R"(,"schedulerName":"zoned","nodeSelector":{"zone":"b"})");
  cluster.CreatePod("free", R"(,"nodeSelector":{"zone":"b"})");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("free"), "elsewhere") << "of another profile";
  EXPECT_EQ(
      cluster.ConditionMessage("both"),
      "0/3 nodes are available: 1 node(s) didn't match scheduler-enforced node affinity, 2 node(s) "
      "didn't match Pod's node affinity/selector.");
}

TEST(Profiles, RequestedToCapacityRatioScoresByItsShape) {
  TestCluster cluster;
  // The shape prefers nodes that are half full.
  cluster.profiles = Parse(R"(
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: cpu}]
        requestedToCapacityRatio:
          shape: [{utilization: 0, score: 0}, {utilization: 50, score: 10}, {utilization: 100, score: 0}]
  plugins: {multiPoint: {disabled: [{name: NodeResourcesBalancedAllocation}]}}
)")
                         .profiles;
  for (const char* node : {"n0", "n1"}) cluster.CreateNode(node);  // 4 cpu each
  cluster.StartScheduler();
  const auto create = [&](std::string name, const char* cpu) {
    cluster.Create(
        "Pod", StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"containers":[{"name":"c",)",
                      R"("image":"i","resources":{"requests":{"cpu":")", cpu, R"("}}}]}})"));
    cluster.Settle();
    return cluster.NodeOf(name);
  };
  const std::string first = create("a", "1");
  EXPECT_EQ(create("b", "1"), first) << "half full beats a quarter";
  EXPECT_NE(create("c", "2"), first) << "and beats a full one";
  EXPECT_THAT(api::WriteJson(ConfigurationToTree({.profiles = cluster.profiles})->root()),
              HasSubstr(R"("requestedToCapacityRatio":{"shape":[{"utilization":0,"score":0},)"));
}

TEST(Profiles, EachHasItsOwnNamePluginsAndArguments) {
  TestCluster cluster;
  ProfileConfig packing{.name = "packing"};
  NodeResourcesFitArgs fit;
  fit.scoring.most_allocated = true;
  packing.SetArgs("NodeResourcesFit", fit);
  packing.plugins["NodeResourcesBalancedAllocation"] = {.points = 0, .weight = 0, .places = {}};
  ProfileConfig blind{.name = "blind"};
  blind.plugins["TaintToleration"] = {.points = 0, .weight = 0, .places = {}};
  cluster.profiles = {ProfileConfig{}, packing, blind};
  for (const char* node : {"n0", "n1"}) cluster.CreateNode(node);
  cluster.CreateNode("tainted", "{}",
                     R"({"taints":[{"key":"k","value":"v","effect":"NoSchedule"}]})");
  cluster.StartScheduler();
  const auto create = [&](std::string name, std::string scheduler, std::string more = "") {
    cluster.Create("Pod",
                   StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"schedulerName":")",
                          scheduler, R"(","containers":[{"name":"c","image":"i","resources":)",
                          R"({"requests":{"cpu":"1","memory":"1Gi"}}}])", more, "}}"));
    cluster.Settle();
    return cluster.NodeOf(name);
  };
  EXPECT_NE(create("spread-0", "default-scheduler"), create("spread-1", "default-scheduler"));
  const std::string first = create("pack-0", "packing");
  EXPECT_EQ(create("pack-1", "packing"), first);
  EXPECT_EQ(create("pack-2", "packing"), first);
  const char* to_tainted =
      R"(,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
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

TEST(Profiles, APluginMayScoreWithoutFiltering) {
  constexpr Points kScoreOnly = Point::kScore | Point::kPrefer;
  TestCluster cluster;
  cluster.profiles[0].plugins["DynamicResources"] = {
      .points = kScoreOnly, .weight = 0, .places = {}};
  cluster.profiles[0].plugins["PodTopologySpread"] = {
      .points = kScoreOnly, .weight = 0, .places = {}};
  cluster.CreateNode("n1", R"({"zone":"a"})");
  cluster.CreateNode("n2", R"({"zone":"b"})");
  cluster.CreateClass();
  cluster.CreateClaim("c");
  cluster.StartScheduler();
  cluster.CreatePodWithClaims(
      "p", {"c"},
      R"(,"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":)"
      R"("ScheduleAnyway","labelSelector":{"matchLabels":{"app":"web"}}}])");
  cluster.Settle();
  EXPECT_NE(cluster.NodeOf("p"), "");
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
