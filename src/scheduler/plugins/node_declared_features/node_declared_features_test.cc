// Pods that need features of their node, through the API (KEP-5328).
#include "scheduler/plugins/node_declared_features/node_declared_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "features/catalog/catalog.h"
#include "features/testing/static_cpu_feature.h"
#include "scheduler/framework/framework.h"
#include "scheduler/testing/cluster.h"

namespace drakkar::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kRestartAll = "RestartAllContainersOnContainerExits";
constexpr std::string_view kHostUsers = "UserNamespacesHostNetworkSupport";

api::ObjectPtr Parse(std::string_view json) {
  return std::make_shared<const api::Object>(api::ParseJson(json).value());
}

void Declare(TestCluster& cluster, const std::string& node, std::vector<std::string_view> names) {
  cluster.Update("Node", node, "status", [&](api::Draft& object) {
    api::Draft list = api::Draft::Array();
    for (std::string_view name : names) list.Append(name);
    object["status"]["declaredFeatures"] = std::move(list);
  });
}

// A pod that needs RestartAllContainersOnContainerExits; `more` adds other needs.
void CreateRestartingPod(TestCluster& cluster, std::string name, std::string more = "") {
  cluster.Create("Pod", StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"containers":[{
    "name":"c","image":"i","restartPolicy":"Never","restartPolicyRules":[{
    "action":"RestartAllContainers","exitCodes":{"operator":"In","values":[42]}}]}])",
                               more, "}}"));
}

TEST(NodeDeclaredFeatures, APodGoesOnlyToANodeThatDeclaresWhatItNeeds) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.CreateNode("n2");
  cluster.CreateNode("n3");
  Declare(cluster, "n1", {"AnotherFeature"});
  Declare(cluster, "n2", {"AnotherFeature", kRestartAll, "Unknown/toUs"});
  cluster.StartScheduler();
  for (int i = 0; i < 6; ++i) CreateRestartingPod(cluster, StrCat("p", i));
  cluster.CreatePod("plain", R"(,"nodeSelector":{})");
  cluster.Settle();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(cluster.NodeOf(StrCat("p", i)), "n2");
  EXPECT_NE(cluster.NodeOf("plain"), "");
}

TEST(NodeDeclaredFeatures, ARejectionNamesTheMissingFeaturesOfEachNode) {
  TestCluster cluster;
  for (int i = 0; i < 5; ++i) cluster.CreateNode(StrCat("n", i));
  cluster.StartScheduler();
  CreateRestartingPod(cluster, "p");
  cluster.Settle();
  const std::string expected = StrCat(
      "0/5 nodes are available: 5 node(s) did not match node declared features: ", kRestartAll,
      ".");
  EXPECT_EQ(cluster.ConditionMessage("p"), expected);
  EXPECT_THAT(cluster.Events("p", "FailedScheduling"), ElementsAre(expected));

  Declare(cluster, "n0", {kRestartAll});
  Declare(cluster, "n1", {kHostUsers});
  CreateRestartingPod(cluster, "both", R"(,"hostNetwork":true,"hostUsers":false)");
  cluster.Settle();
  EXPECT_EQ(cluster.ConditionMessage("both"),
            StrCat("0/5 nodes are available: 1 node(s) did not match node declared features: ",
                   kRestartAll, ", 1 node(s) did not match node declared features: ", kHostUsers,
                   ", 3 node(s) did not match node declared features: ", kRestartAll, ", ",
                   kHostUsers, "."));
}

TEST(NodeDeclaredFeatures, WorksTogetherWithTheOtherFilters) {
  TestCluster cluster;
  cluster.CreateNode("declares");
  cluster.CreateNode("labelled", R"({"disk":"ssd"})");
  Declare(cluster, "declares", {kRestartAll});
  cluster.StartScheduler();
  CreateRestartingPod(cluster, "p", R"(,"nodeSelector":{"disk":"ssd"})");
  cluster.Settle();
  EXPECT_EQ(cluster.ConditionMessage("p"),
            StrCat("0/2 nodes are available: 1 node(s) did not match node declared features: ",
                   kRestartAll, ", 1 node(s) didn't match Pod's node affinity/selector."));
  Declare(cluster, "labelled", {kRestartAll});
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("p"), "labelled");
}

TEST(NodeDeclaredFeatures, IsNotLoadedWhileTheGateIsOffAndIsEnforcedAgainWhenItIsOn) {
  const FeatureGates on;
  const FeatureGates off = on.With(Gate::kNodeDeclaredFeatures, false);
  TestCluster cluster(on);
  cluster.CreateNode("n1");
  cluster.StartScheduler();
  CreateRestartingPod(cluster, "first");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("first"), "");

  cluster.KillScheduler();
  cluster.SetGates(off);
  cluster.StartScheduler();
  CreateRestartingPod(cluster, "second");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("first"), "n1") << "an incompatible node is not filtered out";
  EXPECT_EQ(cluster.NodeOf("second"), "n1");

  cluster.KillScheduler();
  cluster.SetGates(on);
  cluster.StartScheduler();
  CreateRestartingPod(cluster, "third");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("third"), "");
  EXPECT_EQ(cluster.NodeOf("first"), "n1") << "what runs keeps running";
}

TEST(NodeDeclaredFeatures, WithTheGateOffTheAllocatorIgnoresDeclarationsToo) {
  const FeatureGates on = FeatureGates().With(Gate::kDRAOptionalNodePreparation, true);
  for (const bool gate : {true, false, true}) {
    TestCluster cluster(on.With(Gate::kNodeDeclaredFeatures, gate));
    cluster.CreateNode("n1");
    cluster.Create("ResourceSlice", R"({"metadata":{"name":"s"},"spec":{"driver":"d.example.com",
      "nodeName":"n1","pool":{"name":"n1","generation":1,"resourceSliceCount":1},
      "skipNodeOperations":true,"devices":[{"name":"dev-0"}]}})");
    cluster.CreateClass();
    cluster.CreateClaim("c");
    cluster.StartScheduler();
    cluster.CreatePodWithClaims("p", {"c"});
    cluster.Settle();
    EXPECT_EQ(cluster.NodeOf("p"), gate ? "" : "n1") << cluster.ConditionMessage("p");
  }
}

TEST(NodeDeclaredFeatures, AllocatedClaimsAddRequirements) {
  TestCluster cluster(FeatureGates().With(Gate::kDRAOptionalNodePreparation, true));
  cluster.CreateNode("n1");
  cluster.CreateNode("n2");
  cluster.CreateClass();
  cluster.CreateClaim("c");
  // Allocated by somebody else, usable on every node.
  cluster.Update("ResourceClaim", "c", "status", [](api::Draft& claim) {
    claim["status"]["allocation"] = api::Draft(
        api::ParseJson(R"({"devices":{"results":[{"request":"req","driver":"d.example.com",
          "pool":"p","device":"d","skipNodeOperations":true}]}})")
            .value());
  });
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p", {"c"});
  cluster.Settle();
  EXPECT_EQ(cluster.ConditionMessage("p"),
            "0/2 nodes are available: 2 node(s) did not match node declared features: "
            "DraOptionalNodePreparation.");
  Declare(cluster, "n2", {"DRAOptionalNodeOperations"});  // its other name
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("p"), "n2");
}

TEST(NodeDeclaredFeatures, AboveItsLastVersionAFeatureIsNotRequired) {
  for (const int last : {36, 37}) {
    features::FeatureList more;
    more.push_back(std::make_unique<features::StaticCpuFeature>(features::VersionOf({1, last})));
    const features::Framework framework = features::FrameworkWith(std::move(more)).value();
    TestCluster cluster;
    cluster.declared_features = &framework;
    cluster.CreateNode("n1");
    cluster.StartScheduler();
    cluster.CreatePod("p", R"(,"tolerations":[{"key":"exclusive-cpus","operator":"Exists"}])");
    cluster.Settle();
    EXPECT_EQ(cluster.NodeOf("p"), last == 36 ? "n1" : "");
    // A scheduler of an older release still asks.
    cluster.KillScheduler();
    cluster.SetGates(
        FeatureGates::Create({.emulated = {1, 36}, .overrides = {}, .turned_on = {}}).value());
    cluster.StartScheduler();
    cluster.CreatePod("q", R"(,"tolerations":[{"key":"exclusive-cpus","operator":"Exists"}])");
    cluster.Settle();
    EXPECT_EQ(cluster.NodeOf("q"), "");
  }
}

TEST(NodeDeclaredFeatures, ACustomFeatureIsEnforced) {
  features::FeatureList more;
  more.push_back(std::make_unique<features::StaticCpuFeature>());
  const features::Framework framework = features::FrameworkWith(std::move(more)).value();
  TestCluster cluster;
  cluster.declared_features = &framework;
  cluster.CreateNode("n1");
  cluster.CreateNode("n2");
  cluster.StartScheduler();
  cluster.CreatePod("p", R"(,"tolerations":[{"key":"exclusive-cpus","operator":"Exists"}])");
  cluster.Settle();
  EXPECT_EQ(cluster.ConditionMessage("p"),
            "0/2 nodes are available: 2 node(s) did not match node declared features: "
            "TestStaticCpu.");
  Declare(cluster, "n2", {"TestStaticCpu/old"});
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("p"), "n2");
}

TEST(NodeDeclaredFeatures, ReportsItsDurationAndTheNumberOfWaitingPods) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.StartScheduler();
  for (int i = 0; i < 12; ++i) CreateRestartingPod(cluster, StrCat("p", i));
  cluster.Settle();
  const std::string text = cluster.metrics().Text();
  for (const char* point : {"PreFilter", "Filter"}) {
    EXPECT_THAT(text, HasSubstr(StrCat(
                          "scheduler_plugin_execution_duration_seconds_count{extension_point=\"",
                          point, "\",plugin=\"NodeDeclaredFeatures\",status=\"")));
  }
  EXPECT_THAT(text, HasSubstr("scheduler_pending_pods{queue=\"unschedulable\"} 12"));
}

TEST(NodeDeclaredFeatures, AnEventWakesAPodOnlyIfItCanHelp) {
  TestCluster cluster;
  cluster.CreateNode("n1");
  cluster.CreateNode("n2");
  cluster.StartScheduler();
  CreateRestartingPod(cluster, "p");
  cluster.Settle();
  const auto attempts = [&] {
    const std::string text = cluster.metrics().Text();
    const std::string line = "result=\"unschedulable\"} ";
    const std::size_t at = text.find(line, text.find("scheduler_schedule_attempts_total{"));
    return std::atoi(text.c_str() + at + line.size());
  };
  ASSERT_EQ(attempts(), 1);
  // Waits until the backoff after a rejection is over, so that an event takes effect at once.
  const auto after = [&](auto change) {
    cluster.loop().Advance(std::chrono::seconds(11));
    const int before = attempts();
    change();
    cluster.Settle();
    return attempts() - before;
  };
  EXPECT_EQ(after([&] { Declare(cluster, "n1", {kHostUsers}); }), 0) << "not what is needed";
  EXPECT_EQ(after([&] {
              cluster.Update("Node", "n1", "",
                             [](api::Draft& node) { node["metadata"]["labels"].Entry("a") = "b"; });
            }),
            0);
  EXPECT_EQ(after([&] {
              cluster.Update("Pod", "p", "",
                             [](api::Draft& pod) { pod["metadata"]["labels"].Entry("a") = "b"; });
            }),
            0)
      << "its requirement is the same";
  EXPECT_EQ(after([&] { cluster.CreatePod("other"); }), 0);
  EXPECT_EQ(after([&] { cluster.Delete("Pod", "other"); }), 0);
  EXPECT_EQ(after([&] { cluster.CreateSlice("n1", 1); }), 0);
  EXPECT_EQ(after([&] { cluster.CreateNode("n3"); }), 1) << "a node was added";
  Declare(cluster, "n2", {kRestartAll});
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("p"), "n2");
}

// Fixture for single queueing hints.
struct Hints {
  Hints() {
    pod = MakePodInfo(Parse(Pod(R"("restartPolicyRules":[{"action":"RestartAllContainers"}])")));
  }
  static std::string Pod(std::string container) {
    return StrCat(R"({"metadata":{"name":"p","namespace":"default","uid":"u"},"spec":{
      "resourceClaims":[{"name":"e","resourceClaimName":"mine"}],"containers":[{)",
                  container, "}]}}");
  }
  static api::ObjectPtr Node(std::string features) {
    return Parse(
        StrCat(R"({"metadata":{"name":"n"},"status":{"declaredFeatures":)", features, "}}"));
  }
  static api::ObjectPtr Claim(std::string name, bool allocated) {
    return Parse(StrCat(R"({"metadata":{"name":")", name, R"(","namespace":"default"},"status":{)",
                        allocated ? R"("allocation":{})" : "", "}}"));
  }
  bool Wakes(EventKind kind, api::ObjectPtr before, api::ObjectPtr after) {
    return plugin.MayHelp(*pod, {kind, std::move(before), std::move(after), {}});
  }

  device::AllocatedState allocated;
  NodeTable nodes;
  ClaimCache claims{allocated};
  NodeDeclaredFeatures plugin{{.nodes = nodes,
                               .claims = claims,
                               .framework = features::DefaultFramework(),
                               .version = features::VersionOf(kOurVersion)}};
  PodInfoPtr pod;
};

TEST(NodeDeclaredFeaturesHints, ANodeHelpsOnlyIfItNewlySatisfiesThePod) {
  Hints h;
  const std::string has = StrCat("[", Quote(kRestartAll), "]");
  const std::string more = StrCat(R"(["A",)", Quote(kRestartAll), "]");
  using enum EventKind;
  EXPECT_TRUE(h.Wakes(kNodeAdd, nullptr, h.Node("[]")));
  EXPECT_TRUE(h.Wakes(kNodeDeclaredFeatures, h.Node("[]"), h.Node(has)));
  EXPECT_TRUE(h.Wakes(kNodeDeclaredFeatures, h.Node(R"(["A"])"), h.Node(more)));
  EXPECT_FALSE(h.Wakes(kNodeDeclaredFeatures, h.Node(has), h.Node(more)));
  EXPECT_FALSE(h.Wakes(kNodeDeclaredFeatures, h.Node(has), h.Node("[]")));
  EXPECT_FALSE(h.Wakes(kNodeDeclaredFeatures, h.Node("[]"), h.Node(R"(["A"])")));
}

TEST(NodeDeclaredFeaturesHints, APodUpdateHelpsOnlyIfItsRequirementsChange) {
  Hints h;
  const api::ObjectPtr other = Parse(h.Pod(R"("restartPolicyRules":[{"action":"Restart"}])"));
  const api::ObjectPtr same =
      Parse(h.Pod(R"("image":"new","restartPolicyRules":[{"action":"RestartAllContainers"}])"));
  EXPECT_TRUE(h.Wakes(EventKind::kTargetPodChange, h.pod->pod, other));
  EXPECT_FALSE(h.Wakes(EventKind::kTargetPodChange, h.pod->pod, same));
}

TEST(NodeDeclaredFeaturesHints, AClaimHelpsOnlyIfItIsAllocatedOrDeallocated) {
  Hints h;
  using enum EventKind;
  EXPECT_TRUE(h.Wakes(kClaimUpdate, h.Claim("mine", false), h.Claim("mine", true)));
  EXPECT_TRUE(h.Wakes(kClaimUpdate, h.Claim("mine", true), h.Claim("mine", false)));
  EXPECT_TRUE(h.Wakes(kClaimDelete, h.Claim("mine", true), nullptr));
  EXPECT_TRUE(h.Wakes(kClaimAdd, nullptr, h.Claim("mine", true)));
  EXPECT_FALSE(h.Wakes(kClaimAdd, nullptr, h.Claim("mine", false)));
  EXPECT_FALSE(h.Wakes(kClaimUpdate, h.Claim("mine", true), h.Claim("mine", true)));
  EXPECT_FALSE(h.Wakes(kClaimUpdate, h.Claim("other", true), h.Claim("other", false)));
  EXPECT_FALSE(h.Wakes(kClaimDelete, h.Claim("other", true), nullptr));
}

TEST(NodeDeclaredFeaturesHints, OtherEventsDoNotHelp) {
  Hints h;
  using enum EventKind;
  EXPECT_EQ(h.plugin.events(), MaskOf(kNodeAdd, kNodeDeclaredFeatures, kTargetPodChange, kClaimAdd,
                                      kClaimUpdate, kClaimDelete));
}

// Fixture for single steps over a node table.
struct Steps : Hints {
  Steps() {
    plugin.Register({.name = "NodeDeclaredFeatures", .id = 3});
    cycle.pod = pod;
  }
  std::string Filter() {
    NodeSet left = nodes.known();
    EXPECT_TRUE(plugin.Filter(cycle, left).ok());
    std::string names;
    left.ForEach([&](NodeIndex node) { names += nodes.name(node); });
    return names;
  }
  void Set(std::string name, std::string features) {
    nodes.SetNode(Parse(StrCat(R"({"metadata":{"name":")", name,
                               R"("},"status":{"declaredFeatures":)", features, "}}")));
  }
  Cycle cycle;
};

TEST(NodeDeclaredFeaturesSteps, PreFilterSkipsPodsThatNeedNothing) {
  Steps s;
  Cycle plain;
  plain.pod = MakePodInfo(Parse(R"({"metadata":{"name":"p"},"spec":{"containers":[{}]}})"));
  EXPECT_TRUE(s.plugin.PreFilter(plain).IsSkip());
  EXPECT_TRUE(s.plugin.PreFilter(s.cycle).ok());
}

TEST(NodeDeclaredFeaturesSteps, EqualNodesAreTestedOnceAndChangesAreFollowed) {
  Steps s;
  const std::string has = StrCat("[", Quote(kRestartAll), "]");
  for (int i = 0; i < 200; ++i) s.Set(StrCat("n", i, ","), i < 3 ? has : R"(["X"])");
  ASSERT_TRUE(s.plugin.PreFilter(s.cycle).ok());
  EXPECT_EQ(s.Filter(), "n0,n1,n2,");
  EXPECT_EQ(s.plugin.group_count(), 2u) << "names that nobody knows make no group";
  s.Set("n1,", "[]");
  s.Set("n9,", has);
  EXPECT_EQ(s.Filter(), "n0,n2,n9,");
  s.nodes.RemoveNode("n0,");
  EXPECT_EQ(s.Filter(), "n2,n9,");
  s.Set("new,", "[]");  // reuses the index of n0
  EXPECT_EQ(s.Filter(), "n2,n9,");
  s.Set("late,", has);  // the table grows
  EXPECT_EQ(s.Filter(), "n2,n9,late,");
  EXPECT_EQ(s.plugin.group_count(), 2u);
}

// If every node declares something else, the answers stay the same, and declarations that no node
// has any more are dropped.
TEST(NodeDeclaredFeaturesSteps, ManyDeclarationsAreTestedNodeByNode) {
  Steps s;
  std::vector<std::string> names;
  for (const auto& feature : features::AllFeatures(features::CatalogSetting::kKep)) {
    names.emplace_back(feature->Name());
  }
  std::sort(names.begin(), names.end());
  const auto declared = [&](unsigned number) {
    std::string list;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if ((number >> i & 1) != 0) list += StrCat(list.empty() ? "" : ",", Quote(names[i]));
    }
    return StrCat("[", list, "]");
  };
  constexpr unsigned kNodes = 200;
  std::string expected;
  for (unsigned i = 0; i < kNodes; ++i) {
    s.Set(StrCat("n", i, ","), declared(i));
    if (declared(i).find(kRestartAll) != std::string::npos) expected += StrCat("n", i, ",");
  }
  ASSERT_TRUE(s.plugin.PreFilter(s.cycle).ok());
  EXPECT_EQ(s.Filter(), expected);
  EXPECT_EQ(s.plugin.group_count(), kNodes);
  NodeSet left = s.nodes.known();
  ASSERT_TRUE(s.plugin.Filter(s.cycle, left).ok());
  NodeSet rejected = s.nodes.known();
  rejected.RemoveAll(left);
  Diagnosis diagnosis;
  s.plugin.Explain(s.cycle, rejected, diagnosis);
  ASSERT_EQ(diagnosis.reasons().size(), 1u);
  EXPECT_EQ(diagnosis.reasons().begin()->second, rejected.Count());

  for (unsigned round = 1; round < 4; ++round) {
    for (unsigned i = 0; i < kNodes; ++i) s.Set(StrCat("n", i, ","), declared(i + round * 64));
    s.Filter();
    EXPECT_LE(s.plugin.group_count(), kNodes);
  }
  for (unsigned i = 0; i < kNodes; ++i) s.Set(StrCat("n", i, ","), declared(0));
  EXPECT_EQ(s.Filter(), "");
  EXPECT_EQ(s.plugin.group_count(), 1u);
  s.Set("late,", StrCat("[", Quote(kRestartAll), "]"));  // few again, in a grown table
  EXPECT_EQ(s.Filter(), "late,");
  EXPECT_EQ(s.plugin.group_count(), 2u);
}

// A pod whose needs are unknown must not be placed as if it needed nothing.
TEST(NodeDeclaredFeatures, APodWhoseNeedsCannotBeInferredStaysPendingWithTheReason) {
  class Puzzled : public features::Feature {
    std::string_view Name() const override { return "TestPuzzled"; }
    features::FeatureRequirements Requirements() const override {
      return {.enabled_feature_gates = {"G"}, .static_configuration = {}, .runtime_features = {}};
    }
    features::NeededBecauseOf InferForScheduling(const features::PodInfo& pod) const override {
      if (pod.spec["hostname"].str() != "riddle") return std::nullopt;
      return InvalidArgument("the pod is a riddle");
    }
  };
  features::FeatureList more;
  more.push_back(std::make_unique<Puzzled>());
  const features::Framework framework = features::FrameworkWith(std::move(more)).value();
  TestCluster cluster;
  cluster.declared_features = &framework;
  cluster.CreateNode("n1");
  cluster.StartScheduler();
  cluster.CreatePod("p", R"(,"hostname":"riddle")");
  cluster.CreatePod("plain");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("p"), "");
  EXPECT_THAT(
      cluster.ConditionMessage("p"),
      HasSubstr(
          "inferring the pod's feature requirements: feature TestPuzzled: the pod is a riddle"));
  EXPECT_EQ(cluster.NodeOf("plain"), "n1");
}

TEST(NodeDeclaredFeaturesSteps, ARefusalCannotBeResolvedByRemovingPods) {
  Steps s;
  s.Set("a", "[]");
  s.Set("b", "[]");
  std::vector<std::unique_ptr<Plugin>> plugins;
  plugins.push_back(std::make_unique<NodeDeclaredFeatures>(
      NodeDeclaredFeatures::Options{.nodes = s.nodes,
                                    .claims = s.claims,
                                    .framework = features::DefaultFramework(),
                                    .version = features::VersionOf(kOurVersion)}));
  plugins.back()->Register(
      {.name = "NodeDeclaredFeatures", .points = PointsOf<NodeDeclaredFeatures>()});
  SeededLoop loop(1);
  Framework framework(loop, s.nodes, plugins, nullptr);
  Cycle cycle;
  cycle.pod = s.pod;
  const Decision decision = framework.Decide(cycle, kNoNode);
  EXPECT_EQ(decision.status.code, Code::kUnresolvable);
  EXPECT_THAT(decision.diagnosis.reasons(),
              ElementsAre(std::pair<const std::string, std::size_t>(
                  StrCat("node(s) did not match node declared features: ", kRestartAll), 2)));
}

}  // namespace
}  // namespace drakkar::scheduler
