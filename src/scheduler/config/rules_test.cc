// Every field of a configuration: read, written back, and rejected with its path if it is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/writer.h"
#include "base/text/text.h"
#include "client/silent_client.h"
#include "scheduler/config/configuration.h"
#include "scheduler/plugins/dynamic_resources/dynamic_resources_args.h"
#include "scheduler/plugins/node_affinity/node_affinity_args.h"
#include "scheduler/plugins/node_resources/node_resources_args.h"
#include "scheduler/settings.h"

namespace drakkar::scheduler {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kHead[] =
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

std::string ErrorOf(std::string body, FeatureGates gates = {}) {
  const auto parsed = ParseConfiguration(kHead + body, gates);
  return parsed.ok() ? "" : parsed.error().message;
}
std::string ErrorOfProfile(std::string profile) {
  return ErrorOf(StrCat("profiles: [{", profile, "}]"));
}
// Errors in the arguments of one plugin, without the path that leads to them.
std::string ErrorOfArgs(std::string plugin, std::string args) {
  std::string error =
      ErrorOfProfile(StrCat("pluginConfig: [{name: ", plugin, ", args: {", args, "}}]"));
  constexpr std::string_view kPath = "profiles[0].pluginConfig[0].args.";
  const std::size_t at = error.find(kPath);
  return at == std::string::npos ? error : error.erase(at, kPath.size());
}

TEST(ConfigurationRules, EveryFieldIsReadAndWrittenBack) {
  const auto parsed = ParseConfiguration(StrCat(kHead, R"(
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
clientConnection: {kubeconfig: /etc/kubeconfig, contentType: application/json}
leaderElection: {leaderElect: false, leaseDuration: 31s, renewDeadline: 21s, retryPeriod: 5s,
                 resourceName: mine, resourceNamespace: here, resourceLock: leases}
percentageOfNodesToScore: 33
profiles:
- schedulerName: first
  percentageOfNodesToScore: 44
  plugins:
    score: {disabled: [{name: TaintToleration}], enabled: [{name: NodeAffinity, weight: 9}]}
  pluginConfig:
  - name: DynamicResources
    args: {filterTimeout: 5s, bindingTimeout: 90s}
  - name: NodeResourcesFit
    args:
      ignoredResources: [example.com/a, example.com/b]
      ignoredResourceGroups: [vendor.io, other.io]
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: cpu, weight: 3}, {name: memory}]
        requestedToCapacityRatio: {shape: [{utilization: 0, score: 10}, {utilization: 100, score: 1}]}
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]
- schedulerName: second
)"),
                                         FeatureGates());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_THAT(parsed->remarks, IsEmpty());
  const std::string written = api::WriteJson(ConfigurationToTree(*parsed)->root());
  for (const char* part : {
           R"("clientConnection":{"kubeconfig":"/etc/kubeconfig"})",
           R"("leaderElect":false)",
           R"("leaseDuration":"31s")",
           R"("renewDeadline":"21s")",
           R"("retryPeriod":"5s")",
           R"("resourceName":"mine")",
           R"("resourceNamespace":"here")",
           R"("podInitialBackoffSeconds":2)",
           R"("podMaxBackoffSeconds":20)",
           R"("schedulerName":"first","percentageOfNodesToScore":44)",
           R"("schedulerName":"second","percentageOfNodesToScore":33)",
           R"("score":{"enabled":[{"name":"NodeAffinity","weight":9},{"name":"NodeResourcesFit",)",
           R"("ignoredResources":["example.com/a","example.com/b"])",
           R"("ignoredResourceGroups":["vendor.io","other.io"])",
           R"("type":"RequestedToCapacityRatio")",
           R"("shape":[{"utilization":0,"score":10},{"utilization":100,"score":1}])",
           R"("resources":[{"name":"cpu","weight":3},{"name":"memory","weight":1}])",
           R"("bindingTimeout":"1m30s")",
           R"("filterTimeout":"5s")",
           R"("key":"zone")",
           R"("defaultingType":"List","defaultConstraints":[])",
       }) {
    EXPECT_THAT(written, ::testing::HasSubstr(part));
  }
  const auto again = ParseConfiguration(written, FeatureGates());
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(api::WriteJson(ConfigurationToTree(*again)->root()), written);
}

TEST(ConfigurationRules, AFileHasOneDocumentOfTheRightKind) {
  const auto error = [](std::string text) {
    const auto parsed = ParseConfiguration(text, FeatureGates());
    return parsed.ok() ? "" : parsed.error().message;
  };
  EXPECT_EQ(error(""), "the file must contain exactly one document, not 0");
  EXPECT_EQ(error(StrCat(kHead, "---\n", kHead)),
            "the file must contain exactly one document, not 2");
  EXPECT_EQ(error("[]"), "the file must be an object");
  EXPECT_EQ(error("apiVersion: kubescheduler.config.k8s.io/v1\nkind: Other"),
            "kind must be KubeSchedulerConfiguration");
  EXPECT_EQ(error("apiVersion: kubescheduler.config.k8s.io/v1"),
            "kind must be KubeSchedulerConfiguration");
  EXPECT_EQ(ErrorOfArgs("DynamicResources", "kind: Other"), "kind must be DynamicResourcesArgs");
  EXPECT_EQ(ErrorOfArgs("DynamicResources", "apiVersion: v1"),
            "apiVersion must be kubescheduler.config.k8s.io/v1");
}

TEST(ConfigurationRules, EveryValueHasItsTypeAndBounds) {
  const std::pair<const char*, const char*> cases[] = {
      {"parallelism: 0", "parallelism must be a whole number from 1 to 2147483648"},
      {"parallelism: 1", ""},
      {"parallelism: 2147483648", ""},
      {"parallelism: 2147483649", "parallelism must be a whole number from 1 to 2147483648"},
      {"parallelism: 1.5", "parallelism must be a whole number from 1 to 2147483648"},
      {"podInitialBackoffSeconds: 0",
       "podInitialBackoffSeconds must be a whole number from 1 to 2147483648"},
      {"podInitialBackoffSeconds: 10", ""},
      {"podInitialBackoffSeconds: 11",
       "podMaxBackoffSeconds must be at least podInitialBackoffSeconds"},
      {"podMaxBackoffSeconds: 0",
       "podMaxBackoffSeconds must be a whole number from 1 to 2147483648"},
      {"podMaxBackoffSeconds: 1", ""},
      {"percentageOfNodesToScore: -1",
       "percentageOfNodesToScore must be a whole number from 0 to 100"},
      {"percentageOfNodesToScore: 100", ""},
      {"enableProfiling: 1", "enableProfiling must be true or false"},
      {"enableContentionProfiling: x", "enableContentionProfiling must be true or false"},
      {"delayCacheUntilActive: []", "delayCacheUntilActive must be true or false"},
      {"extenders: []", ""},
      {"leaderElection: 5", "leaderElection must be an object"},
      {"leaderElection: {leaderElect: 5}", "leaderElection.leaderElect must be true or false"},
      {"leaderElection: {leaseDuration: 5}",
       "leaderElection.leaseDuration must be a duration such as 10s or 5m"},
      {"leaderElection: {renewDeadline: x}",
       "leaderElection.renewDeadline must be a duration such as 10s or 5m"},
      {"leaderElection: {retryPeriod: x}",
       "leaderElection.retryPeriod must be a duration such as 10s or 5m"},
      {"leaderElection: {resourceName: 5}", "leaderElection.resourceName must be a string"},
      {"leaderElection: {resourceNamespace: 5}",
       "leaderElection.resourceNamespace must be a string"},
      {"leaderElection: {resourceLock: endpoints}", "leaderElection.resourceLock must be leases"},
      {"leaderElection: {other: 1}", R"(unknown field "leaderElection.other")"},
      {"clientConnection: {kubeconfig: 5}", "clientConnection.kubeconfig must be a string"},
      {"clientConnection: {other: 5}", R"(unknown field "clientConnection.other")"},
      {"profiles: [{schedulerName: ''}]", "profiles[0].schedulerName must not be empty"},
      {"profiles: [{schedulerName: a}, {schedulerName: b}, {schedulerName: a}]",
       R"(profiles[2].schedulerName "a" is already in use)"},
      {"profiles: [{schedulerName: a}, {percentageOfNodesToScore: 101}]",
       "profiles[1].percentageOfNodesToScore must be a whole number from 0 to 100"},
      {"profiles: [{pluginConfig: [{name: DynamicResources}, {name: Nope}]}]",
       "profiles[0].pluginConfig[0].args must be an object"},
      {"profiles: [{pluginConfig: [{name: DynamicResources, args: {}}, {name: Nope}]}]",
       R"(profiles[0].pluginConfig[1].name: unknown plugin "Nope", or one without arguments)"},
      {"profiles: [{pluginConfig: [{name: NodePorts, args: {}}]}]",
       R"(profiles[0].pluginConfig[0].name: unknown plugin "NodePorts", or one without arguments)"},
      {"profiles: [{pluginConfig: [{name: DynamicResources, args: {}, more: 1}]}]",
       R"(unknown field "profiles[0].pluginConfig[0].more")"},
  };
  for (const auto& [body, error] : cases) EXPECT_EQ(ErrorOf(body), error) << body;
}

TEST(ConfigurationRules, WhatHasNoEffectIsRemarkedOnce) {
  const auto remarks = [](std::string body) {
    const auto parsed = ParseConfiguration(kHead + body, FeatureGates());
    EXPECT_TRUE(parsed.ok()) << parsed.error().message;
    return parsed.ok() ? parsed->remarks : std::vector<std::string>();
  };
  EXPECT_THAT(remarks("clientConnection: {acceptContentTypes: application/json}"), IsEmpty());
  EXPECT_THAT(remarks("clientConnection: {acceptContentTypes: text/x, contentType: text/y}"),
              ElementsAre("clientConnection.acceptContentTypes has no effect: requests are sent as "
                          "JSON",
                          "clientConnection.contentType has no effect: requests are sent as JSON"));
  EXPECT_THAT(remarks("enableProfiling: false\nenableContentionProfiling: true"),
              ElementsAre("enableContentionProfiling has no effect in this scheduler"));
  EXPECT_THAT(remarks("profiles: [{pluginConfig: [{name: VolumeBinding, args: {}}]}]"),
              ElementsAre("profiles[0].pluginConfig[0].args has no effect: plugin VolumeBinding "
                          "is not supported by this scheduler"));
  EXPECT_THAT(remarks("profiles: [{pluginConfig: [{name: InterPodAffinity, args: {apiVersion: v}}, "
                      "{name: DefaultPreemption}]}]"),
              ElementsAre("profiles[0].pluginConfig[0].args has no effect: InterPodAffinity always "
                          "uses the defaults"));
}

TEST(ConfigurationRules, PluginSetsNameKnownPluginsAndPoints) {
  const std::pair<const char*, const char*> cases[] = {
      {"filter: {enabled: [{name: ''}]}",
       "profiles[0].plugins.filter.enabled[0].name must name a plugin"},
      {"filter: {enabled: [{name: NodeName}, {name: Nope}]}",
       R"(profiles[0].plugins.filter.enabled: unknown plugin "Nope")"},
      {"filter: {disabled: [{name: NodeName}, {name: Nope}]}",
       R"(profiles[0].plugins.filter.disabled: unknown plugin "Nope")"},
      {"filter: {disabled: [{name: VolumeBinding}]}", ""},
      {"score: {enabled: [{name: NodeAffinity, weight: 1000001}]}",
       "profiles[0].plugins.score.enabled[0].weight must be a whole number from 0 to 1000000"},
      {"score: {enabled: [{name: NodeAffinity, weight: 1000000}]}", ""},
      {"filter: {other: []}", R"(unknown field "profiles[0].plugins.filter.other")"},
      {"other: {}", R"(unknown field "profiles[0].plugins.other")"},
      {"queueSort: {disabled: [{name: PrioritySort}]}",
       "profiles[0].plugins.queueSort: PrioritySort cannot be disabled: there is no other queue "
       "sort plugin"},
      {"multiPoint: {disabled: [{name: PrioritySort}]}",
       "profiles[0].plugins.multiPoint: PrioritySort cannot be disabled: there is no other queue "
       "sort plugin"},
      {"filter: {disabled: [{name: PrioritySort}]}", ""},
      {"queueSort: {enabled: [{name: PrioritySort}]}", ""},
      {"permit: {enabled: [{name: NodeName}]}", ""},
      {"bind: {enabled: [{name: NodeName}]}",
       "profiles[0].plugins.bind.enabled: NodeName has no such extension point"},
      {"preFilter: {disabled: [{name: DynamicResources}]}, filter: {disabled: [{name: "
       "DynamicResources}]}, reserve: {disabled: [{name: DynamicResources}]}, preBind: "
       "{disabled: [{name: DynamicResources}]}",
       ""},
      {"reserve: {disabled: [{name: DynamicResources}]}",
       "profiles[0].plugins: DynamicResources must be enabled at all of preFilter, filter, "
       "reserve and preBind, or at none of them"},
  };
  for (const auto& [plugins, error] : cases) {
    EXPECT_EQ(ErrorOfProfile(StrCat("plugins: {", plugins, "}")), error) << plugins;
  }
}

TEST(ConfigurationRules, ArgumentsAreCheckedEachOfThem) {
  struct Case {
    const char* plugin;
    const char* args;
    const char* error;
  };
  constexpr char kShape[] =
      "scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: ";
  const std::string at = "scoringStrategy.requestedToCapacityRatio.";
  const Case cases[] = {
      {"DynamicResources", "bindingTimeout: 1s", ""},
      {"DynamicResources", "bindingTimeout: 999ms", "bindingTimeout must be at least 1 second"},
      {"DynamicResources", "filterTimeout: 0s", ""},
      {"NodeResourcesFit", "ignoredResources: x", "ignoredResources must be a list of strings"},
      {"NodeResourcesFit", "ignoredResources: [a.com/x, 5]",
       "ignoredResources must be a list of strings"},
      {"NodeResourcesFit", "ignoredResourceGroups: [5]",
       "ignoredResourceGroups must be a list of strings"},
      {"NodeResourcesFit", "scoringStrategy: {type: Own}",
       "scoringStrategy.type must be LeastAllocated, MostAllocated or RequestedToCapacityRatio, "
       "not \"Own\""},
      {"NodeResourcesFit", "scoringStrategy: {type: LeastAllocated}", ""},
      {"NodeResourcesFit", "scoringStrategy: {resources: [{name: cpu}, {weight: 2}]}",
       "scoringStrategy.resources[1].name must name a resource"},
      {"NodeResourcesFit", "scoringStrategy: {resources: [{name: cpu, weight: 0}]}",
       "scoringStrategy.resources[0].weight must be a whole number from 1 to 100"},
      {"NodeResourcesFit", "scoringStrategy: {resources: [{name: cpu, weight: 100}]}", ""},
      {"NodeResourcesFit", "scoringStrategy: {resources: [{name: cpu, weight: 101}]}",
       "scoringStrategy.resources[0].weight must be a whole number from 1 to 100"},
      {"NodeResourcesBalancedAllocation", "resources: [{name: cpu}, {name: memory}]", ""},
      {"NodeResourcesBalancedAllocation", "resources: [{name: cpu}]",
       "resources can only be cpu and memory with weight 1 in this scheduler"},
      {"NodeResourcesBalancedAllocation", "resources: [{name: cpu}, {name: other}]",
       "resources can only be cpu and memory with weight 1 in this scheduler"},
      {"NodeResourcesBalancedAllocation", "resources: [{name: cpu}, {name: memory, weight: 2}]",
       "resources can only be cpu and memory with weight 1 in this scheduler"},
      {"NodeResourcesBalancedAllocation", "resources: [{name: ''}]",
       "resources[0].name must name a resource"},
      {"PodTopologySpread", "defaultingType: System", ""},
      {"PodTopologySpread", "defaultingType: 5", "defaultingType must be a string"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ErrorOfArgs(c.plugin, c.args), c.error) << c.plugin << " " << c.args;
  }
  const std::pair<const char*, std::string> shapes[] = {
      {"{shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}}", ""},
      {"{shape: []}}", at + "shape must have at least one point"},
      {"{other: 1, shape: [{utilization: 0, score: 0}]}}", "unknown field \"" + at + "other\""},
      {"{shape: [{utilization: -1, score: 0}]}}",
       at + "shape[0].utilization must be a whole number from 0 to 100"},
      {"{shape: [{utilization: 1, score: 0}, {utilization: 101, score: 0}]}}",
       at + "shape[1].utilization must be a whole number from 0 to 100"},
      {"{shape: [{utilization: 0, score: 11}]}}",
       at + "shape[0].score must be a whole number from 0 to 10"},
      {"{shape: [{utilization: 5, score: 1}, {utilization: 4, score: 1}]}}",
       at + "shape[1].utilization must be greater than that of the previous point"},
  };
  for (const auto& [shape, error] : shapes) {
    std::string found = ErrorOfArgs("NodeResourcesFit", StrCat(kShape, shape));
    EXPECT_EQ(found, error) << shape;
  }
}

TEST(ConfigurationRules, TimeoutsNeedTheirGatesOnlyIfTheyAreSet) {
  const FeatureGates no_filter = FeatureGates().With(Gate::kDRASchedulerFilterTimeout, false);
  const FeatureGates no_status = FeatureGates().With(Gate::kDRAResourceClaimDeviceStatus, false);
  const auto args = [](const char* set) {
    return StrCat("profiles: [{pluginConfig: [{name: DynamicResources, args: {", set, "}}]}]");
  };
  EXPECT_EQ(ErrorOf(args(""), no_filter), "");
  EXPECT_EQ(ErrorOf(args(""), no_status), "");
  EXPECT_EQ(ErrorOf(args("bindingTimeout: 5s"), no_filter), "");
  EXPECT_EQ(ErrorOf(args("filterTimeout: 5s"), no_status), "");
  EXPECT_EQ(ErrorOf(args("filterTimeout: 5s"), no_filter),
            "profiles[0].pluginConfig[0].args.filterTimeout cannot be set: "
            "DRASchedulerFilterTimeout feature gate is disabled");
  EXPECT_NE(ErrorOf(args("bindingTimeout: 5s"), no_status), "");
}

TEST(ConfigurationRules, AnAddedAffinityIsCheckedLikeThatOfAPod) {
  const auto required = [](std::string term) {
    return ErrorOfArgs("NodeAffinity",
                       StrCat("addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                              "{nodeSelectorTerms: [",
                              term, "]}}"));
  };
  const auto expression = [&](std::string requirement) {
    return required(StrCat("{matchExpressions: [{", requirement, "}]}"));
  };
  const std::string at =
      "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].";
  const std::string first = at + "matchExpressions[0].";
  EXPECT_EQ(expression("key: a, operator: In, values: [x]"), "");
  EXPECT_EQ(expression("operator: In, values: [x]"), first + "key must not be empty");
  EXPECT_EQ(expression("key: a, operator: In"),
            first + "values must not be empty for the operator In");
  EXPECT_EQ(expression("key: a, operator: NotIn, values: []"),
            first + "values must not be empty for the operator NotIn");
  EXPECT_EQ(expression("key: a, operator: Exists"), "");
  EXPECT_EQ(expression("key: a, operator: Exists, values: [x]"),
            first + "values must be empty for the operator Exists");
  EXPECT_EQ(expression("key: a, operator: DoesNotExist, values: [x]"),
            first + "values must be empty for the operator DoesNotExist");
  EXPECT_EQ(expression("key: a, operator: Gt, values: ['5']"), "");
  EXPECT_EQ(expression("key: a, operator: Gt, values: [x]"),
            first + "values must be one whole number for the operator Gt");
  EXPECT_EQ(expression("key: a, operator: Lt, values: ['5', '6']"),
            first + "values must be one whole number for the operator Lt");
  EXPECT_EQ(expression("key: a, operator: Exists, more: 1"), "unknown field \"" + first + "more\"");
  EXPECT_EQ(required("{matchFields: [{key: metadata.name, operator: In, values: [node]}]}"), "");
  EXPECT_EQ(required("{matchFields: [{key: metadata.uid, operator: In, values: [node]}]}"),
            at + "matchFields[0].key must be metadata.name");
  EXPECT_EQ(required("{other: 1}"), "unknown field \"" + at + "other\"");
  EXPECT_EQ(required("{matchExpressions: [{key: a, operator: Exists}, {key: b}]}"),
            at + "matchExpressions[1].operator must be In, NotIn, Exists, DoesNotExist, Gt or Lt");
  EXPECT_EQ(required("{}, {matchFields: [{key: x, operator: Exists}]}"),
            "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1]."
            "matchFields[0].key must be metadata.name");
  const auto preferred = [](std::string entries) {
    return ErrorOfArgs("NodeAffinity",
                       StrCat("addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [",
                              entries, "]}"));
  };
  const std::string soft = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution";
  EXPECT_EQ(preferred("{weight: 1, preference: {}}"), "");
  EXPECT_EQ(preferred("{weight: 100, preference: {}}"), "");
  EXPECT_EQ(preferred("{preference: {}}"),
            soft + "[0].weight must be a whole number from 1 to 100");
  EXPECT_EQ(preferred("{weight: 1, preference: {}}, {weight: 101, preference: {}}"),
            soft + "[1].weight must be a whole number from 1 to 100");
  EXPECT_EQ(preferred("{weight: 1, preference: {other: 1}}"),
            "unknown field \"" + soft + "[0].preference.other\"");
  EXPECT_EQ(preferred("{weight: 1, more: 1, preference: {}}"),
            "unknown field \"" + soft + "[0].more\"");
}

// Records writes and answers them with an error, or with success if there is none.
class ConfigMapClient final : public client::SilentClient {
 public:
  void Create(client::ResourceRef ref, api::TreePtr body, client::WriteOptions,
              client::ReplyCallback done) override {
    calls.push_back(StrCat("create ", ref.namespace_));
    written = std::move(body);
    Answer(error, done);
  }
  void Update(client::ResourceRef ref, api::TreePtr body, client::WriteOptions,
              client::ReplyCallback done) override {
    calls.push_back(StrCat("update ", ref.namespace_, "/", ref.name));
    written = std::move(body);
    Answer(std::nullopt, done);
  }
  std::optional<Error> error;
  std::vector<std::string> calls;
  api::TreePtr written;

 private:
  static void Answer(const std::optional<Error>& error, const client::ReplyCallback& done) {
    client::Reply reply;
    reply.error = error;
    done(std::move(reply));
  }
};

TEST(SchedulerSettings, ReplaceThoseOfTheLastScheduler) {
  const FeatureGates gates = FeatureGates().With(Gate::kDRAOptionalNodePreparation, true);
  ConfigMapClient client;
  PublishSettings(client, gates, {});
  EXPECT_THAT(client.calls, ElementsAre(StrCat("create ", kSettingsNamespace)));
  client.calls.clear();
  client.error = Error{ErrorCode::kAlreadyExists, "exists"};
  PublishSettings(client, gates, {});
  EXPECT_THAT(client.calls, ElementsAre(StrCat("create ", kSettingsNamespace),
                                        StrCat("update ", kSettingsNamespace, "/", kSettingsName)));
  const auto read = SettingsFromConfigMap(api::Object(client.written));
  ASSERT_TRUE(read.ok()) << read.error().message;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Gate::kCount); ++i) {
    const Gate gate = static_cast<Gate>(i);
    EXPECT_EQ(read->gates.Enabled(gate), gates.Enabled(gate)) << GateName(gate);
  }
  client.calls.clear();
  client.error = Error{ErrorCode::kForbidden, "no"};
  PublishSettings(client, gates, {});
  EXPECT_EQ(client.calls.size(), 1u) << "nothing is updated";
}

}  // namespace
}  // namespace drakkar::scheduler
