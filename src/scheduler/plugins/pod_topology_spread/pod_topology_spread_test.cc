#include "scheduler/plugins/pod_topology_spread/pod_topology_spread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "api/json/reader.h"
#include "base/text/text.h"
#include "scheduler/testing/cluster.h"
#include "scheduler/testing/test_context.h"

namespace drakkar::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kApp[] = R"({"app":"web"})";

api::ObjectPtr Parse(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return std::make_shared<const api::Object>(*tree);
}

// One constraint over zones for app=web; `more` adds members, each preceded by a comma.
std::string OverZones(std::string more = "", std::string_view when = kDoNotSchedule,
                      std::string_view key = "zone") {
  return StrCat(R"({"maxSkew":1,"topologyKey":")", key, R"(","whenUnsatisfiable":")", when,
                R"(","labelSelector":{"matchLabels":{"app":"web"}})", more, "}");
}

class SpreadTest : public ::testing::Test {
 protected:
  SpreadTest() { plugin_.Register({.name = "PodTopologySpread", .points = 0xffff}); }

  void AddNode(std::string name, std::string labels, std::string spec = "{}") {
    world_.AddNode(Parse(StrCat(R"({"metadata":{"name":")", name, R"(","labels":)", labels,
                                R"(},"spec":)", spec, "}")));
  }
  void AddZones() {
    AddNode("a1", R"({"zone":"a","kubernetes.io/hostname":"a1"})");
    AddNode("a2", R"({"zone":"a","kubernetes.io/hostname":"a2"})");
    AddNode("b1", R"({"zone":"b","kubernetes.io/hostname":"b1"})");
  }
  static PodInfoPtr Pod(std::string name, std::string labels, std::string spec,
                        std::string metadata = "") {
    return MakePodInfo(
        Parse(StrCat(R"({"metadata":{"namespace":"ns","name":")", name, R"(","uid":")", name,
                     R"(","labels":)", labels, metadata, R"(},"spec":{)", spec, "}}")));
  }
  // Puts pods of the workload on a node.
  void Place(const std::string& node, int count, const char* labels = kApp,
             std::string metadata = "") {
    for (int i = 0; i < count; ++i) {
      world_.placements.Confirm(Pod(StrCat("placed-", ++placed_), labels,
                                    StrCat(R"("nodeName":")", node, "\""), metadata));
    }
  }
  // A pod with these constraints; `more` adds members to its spec.
  PodInfoPtr Wanted(std::vector<std::string> constraints, std::string labels = kApp,
                    std::string more = "") {
    return Pod("wanted", std::move(labels),
               StrCat(R"("topologySpreadConstraints":[)", Join(constraints, ","), "]", more));
  }
  // The names of the nodes that fit.
  std::vector<std::string> Fits(PodInfoPtr pod) {
    cycle_ = {};
    cycle_.pod = std::move(pod);
    NodeSet left = world_.nodes.known();
    const Status status = plugin_.PreFilter(cycle_);
    if (!status.IsSkip()) {
      EXPECT_TRUE(status.ok()) << status.Message();
      EXPECT_TRUE(plugin_.Filter(cycle_, left).ok());
    }
    std::vector<std::string> names;
    left.ForEach([&](NodeIndex node) { names.push_back(world_.nodes.name(node)); });
    return names;
  }
  std::vector<std::string> Fits(std::string constraint) {
    return Fits(Wanted({std::move(constraint)}));
  }
  // Scores of all nodes, by name; empty if all are equal.
  std::map<std::string, std::int64_t> Scores(PodInfoPtr pod) {
    Fits(std::move(pod));
    std::vector<NodeIndex> nodes;
    world_.nodes.known().ForEach([&](NodeIndex node) { nodes.push_back(node); });
    std::vector<std::int64_t> scores(nodes.size(), -1);
    std::map<std::string, std::int64_t> named;
    if (!plugin_.Score(cycle_, nodes, scores)) return named;
    for (std::size_t i = 0; i < nodes.size(); ++i) named[world_.nodes.name(nodes[i])] = scores[i];
    return named;
  }

  TestContext world_;
  PodTopologySpread plugin_{world_.context};
  Cycle cycle_;
  int placed_ = 0;
};

TEST_F(SpreadTest, APodWithoutConstraintsIsSkipped) {
  AddZones();
  cycle_.pod = Pod("p", "{}", "");
  EXPECT_TRUE(plugin_.PreFilter(cycle_).IsSkip());
}

TEST_F(SpreadTest, AFullDomainAcceptsNoPodUntilTheOthersHaveCaughtUp) {
  AddZones();
  EXPECT_THAT(Fits(OverZones()), ElementsAre("a1", "a2", "b1"));
  Place("a1", 1);
  EXPECT_THAT(Fits(OverZones()), ElementsAre("b1"));
  Place("b1", 1);
  EXPECT_THAT(Fits(OverZones()), ElementsAre("a1", "a2", "b1"));
  Place("b1", 1);
  EXPECT_THAT(Fits(OverZones()), ElementsAre("a1", "a2"));
}

TEST_F(SpreadTest, MaxSkewSaysHowMuchFullerADomainMayBe) {
  AddZones();
  Place("a1", 2);
  const auto with_skew = [](int skew) {
    return StrCat(R"({"maxSkew":)", skew, R"(,"topologyKey":"zone","whenUnsatisfiable":)",
                  R"("DoNotSchedule","labelSelector":{"matchLabels":{"app":"web"}}})");
  };
  EXPECT_THAT(Fits(with_skew(2)), ElementsAre("b1"));
  EXPECT_THAT(Fits(with_skew(3)), ElementsAre("a1", "a2", "b1"));
}

TEST_F(SpreadTest, APodThatTheSelectorDoesNotMatchAddsNothingItself) {
  AddZones();
  Place("a1", 1);
  EXPECT_THAT(Fits(Wanted({OverZones()}, R"({"app":"other"})")), ElementsAre("a1", "a2", "b1"));
  Place("a1", 1);
  EXPECT_THAT(Fits(Wanted({OverZones()}, R"({"app":"other"})")), ElementsAre("b1"));
}

TEST_F(SpreadTest, OnlyLivingPodsOfTheNamespaceThatTheSelectorMatchesCount) {
  AddZones();
  Place("a1", 1, R"({"app":"other"})");
  Place("a1", 1, kApp, R"(,"deletionTimestamp":"2025-01-01T00:00:00Z")");
  world_.placements.Confirm(MakePodInfo(
      Parse(R"({"metadata":{"namespace":"elsewhere","name":"x","uid":"x","labels":{"app":"web"}},
               "spec":{"nodeName":"a1"}})")));
  EXPECT_THAT(Fits(OverZones()), ElementsAre("a1", "a2", "b1"));
  Place("a1", 1);
  EXPECT_THAT(Fits(OverZones()), ElementsAre("b1"));
}

TEST_F(SpreadTest, AnEmptyOrAbsentSelectorCountsNoPod) {
  AddZones();
  Place("a1", 5);
  for (const char* selector : {R"(,"labelSelector":{})", ""}) {
    const std::string constraint = StrCat(
        R"({"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule")", selector, "}");
    EXPECT_THAT(Fits(constraint), ElementsAre("a1", "a2", "b1")) << selector;
  }
}

TEST_F(SpreadTest, ANodeWithoutTheLabelNeitherFitsNorCounts) {
  AddZones();
  AddNode("plain", "{}");
  Place("plain", 3);
  EXPECT_THAT(Fits(OverZones()), ElementsAre("a1", "a2", "b1"));
  Place("a1", 1);
  EXPECT_THAT(Fits(OverZones()), ElementsAre("b1"));
  Diagnosis diagnosis;
  NodeSet rejected = world_.nodes.known();
  rejected.Remove(world_.nodes.Find("b1"));
  plugin_.Explain(cycle_, rejected, diagnosis);
  EXPECT_THAT(
      diagnosis.reasons(),
      UnorderedElementsAre(
          Pair("node(s) didn't match pod topology spread constraints", 2),
          Pair("node(s) didn't match pod topology spread constraints (missing required label)",
               1)));
}

TEST_F(SpreadTest, AllConstraintsMustHold) {
  AddZones();
  Place("a1", 1);
  Place("b1", 1);
  const std::string over_nodes = OverZones("", kDoNotSchedule, "kubernetes.io/hostname");
  EXPECT_THAT(Fits(Wanted({OverZones(), over_nodes})), ElementsAre("a2"));
  Place("a2", 1);
  EXPECT_THAT(Fits(Wanted({OverZones(), over_nodes})), ElementsAre("b1"));
}

TEST_F(SpreadTest, ANodeCountsForAConstraintOnlyIfItHasTheKeysOfAll) {
  AddNode("a1", R"({"zone":"a","rack":"1"})");
  AddNode("b1", R"({"zone":"b"})");
  Place("a1", 1);
  // Zone b has no rack, so zone a is the only domain.
  EXPECT_THAT(Fits(Wanted({OverZones(), OverZones("", kDoNotSchedule, "rack")})),
              ElementsAre("a1"));
  EXPECT_THAT(Fits(OverZones()), ElementsAre("b1"));
}

TEST_F(SpreadTest, WithTooFewDomainsTheMissingOnesCountAsEmpty) {
  AddZones();
  Place("a1", 1);
  Place("b1", 1);
  EXPECT_THAT(Fits(OverZones(R"(,"minDomains":2)")), ElementsAre("a1", "a2", "b1"));
  EXPECT_THAT(Fits(OverZones(R"(,"minDomains":3)")), IsEmpty());
  AddNode("c1", R"({"zone":"c"})");
  EXPECT_THAT(Fits(OverZones(R"(,"minDomains":3)")), ElementsAre("c1"));
}

TEST_F(SpreadTest, NodesThatThePodsAffinityExcludesCountOnlyIfThePolicySaysSo) {
  AddZones();
  AddNode("c1", R"({"zone":"c","pool":"other"})");
  Place("a1", 1);
  Place("b1", 1);
  const std::string affinity =
      R"(,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)"
      R"({"nodeSelectorTerms":[{"matchExpressions":[{"key":"pool","operator":"DoesNotExist"}]}]}}})";
  const auto fits = [&](const char* policy) {
    return Fits(Wanted({OverZones(policy)}, kApp, affinity));
  };
  EXPECT_THAT(fits(""), ElementsAre("a1", "a2", "b1", "c1"));
  EXPECT_THAT(fits(R"(,"nodeAffinityPolicy":"Honor")"), ElementsAre("a1", "a2", "b1", "c1"));
  EXPECT_THAT(fits(R"(,"nodeAffinityPolicy":"Ignore")"), ElementsAre("c1"));
}

TEST_F(SpreadTest, TaintedNodesAreLeftOutOnlyIfThePolicySaysSo) {
  AddZones();
  AddNode("c1", R"({"zone":"c"})", R"({"taints":[{"key":"k","value":"v","effect":"NoSchedule"}]})");
  Place("a1", 1);
  Place("b1", 1);
  EXPECT_THAT(Fits(OverZones()), ElementsAre("c1"));
  EXPECT_THAT(Fits(OverZones(R"(,"nodeTaintsPolicy":"Ignore")")), ElementsAre("c1"));
  EXPECT_THAT(Fits(OverZones(R"(,"nodeTaintsPolicy":"Honor")")),
              ElementsAre("a1", "a2", "b1", "c1"));
  EXPECT_THAT(Fits(Wanted({OverZones(R"(,"nodeTaintsPolicy":"Honor")")}, kApp,
                          R"(,"tolerations":[{"key":"k","operator":"Exists"}])")),
              ElementsAre("c1"));
}

TEST_F(SpreadTest, MatchLabelKeysCountOnlyPodsWithThePodsOwnValue) {
  AddZones();
  Place("a1", 3, R"({"app":"web","revision":"1"})");
  Place("b1", 1, R"({"app":"web","revision":"2"})");
  const std::string by_revision = OverZones(R"(,"matchLabelKeys":["revision","absent"])");
  EXPECT_THAT(Fits(Wanted({by_revision}, R"({"app":"web","revision":"1"})")), ElementsAre("b1"));
  EXPECT_THAT(Fits(Wanted({by_revision}, R"({"app":"web","revision":"2"})")),
              ElementsAre("a1", "a2"));
  EXPECT_THAT(Fits(Wanted({by_revision}, R"({"app":"web"})")), ElementsAre("b1"));
  // Also without a labelSelector.
  const std::string alone =
      R"({"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule",)"
      R"("matchLabelKeys":["revision"]})";
  EXPECT_THAT(Fits(Wanted({alone}, R"({"revision":"2"})")), ElementsAre("a1", "a2"));
}

TEST_F(SpreadTest, CachedCountsFollowEveryChange) {
  AddZones();
  Place("a1", 1);
  EXPECT_THAT(Fits(OverZones()), ElementsAre("b1"));
  // Remove its label, then restore it.
  world_.placements.Confirm(Pod("placed-1", "{}", R"("nodeName":"a1")"));
  EXPECT_THAT(Fits(OverZones()), ElementsAre("a1", "a2", "b1"));
  world_.placements.Confirm(Pod("placed-1", kApp, R"("nodeName":"a1")"));
  EXPECT_THAT(Fits(OverZones()), ElementsAre("b1"));
  // An assumed pod counts; a forgotten one does not.
  world_.placements.Assume(Pod("assumed", kApp, ""), "b1");
  EXPECT_THAT(Fits(OverZones()), ElementsAre("a1", "a2", "b1"));
  world_.placements.Forget("assumed");
  EXPECT_THAT(Fits(OverZones()), ElementsAre("b1"));
  // The node moves to another zone, with its pod.
  AddNode("a1", R"({"zone":"b"})");
  EXPECT_THAT(Fits(OverZones()), ElementsAre("a2"));
  world_.placements.RemoveNode("a1");
  EXPECT_THAT(Fits(OverZones()), ElementsAre("a2", "b1"));
  AddNode("c1", R"({"zone":"c"})");  // reuses the index of a1
  Place("c1", 1);
  EXPECT_THAT(Fits(OverZones()), ElementsAre("a2", "b1"));
}

TEST_F(SpreadTest, ManyKeysAndSelectorsDoNotMixUpCachedCounts) {
  AddZones();
  Place("a1", 1);
  for (std::size_t i = 0; i < 2 * TopologyCounts::kMaxRules; ++i) {
    const std::string other = StrCat(
        R"({"maxSkew":1,"topologyKey":"key-)", i, R"(","whenUnsatisfiable":"DoNotSchedule",)",
        R"("labelSelector":{"matchLabels":{"app":"app-)", i, R"("}}})");
    EXPECT_THAT(Fits(other), IsEmpty());
    ASSERT_THAT(Fits(OverZones()), ElementsAre("b1"));
  }
}

TEST_F(SpreadTest, ASoftConstraintRejectsNothingAndPrefersEmptyDomains) {
  AddZones();
  Place("a1", 2);
  const std::string soft = OverZones("", kScheduleAnyway);
  EXPECT_THAT(Fits(soft), ElementsAre("a1", "a2", "b1"));
  // Two pods and two domains: 2 * ln 4 rounds to 3, which leaves a score of 0 for zone a.
  EXPECT_THAT(Scores(Wanted({soft})),
              UnorderedElementsAre(Pair("a1", 0), Pair("a2", 0), Pair("b1", 100)));
  Place("b1", 1);
  // 3 against ln 4 = 1.39, rounded to 1.
  EXPECT_THAT(Scores(Wanted({soft})),
              UnorderedElementsAre(Pair("a1", 33), Pair("a2", 33), Pair("b1", 100)));
}

TEST_F(SpreadTest, WithoutPodsAllNodesThatHaveTheLabelAreEqual) {
  AddZones();
  AddNode("plain", "{}");
  EXPECT_THAT(
      Scores(Wanted({OverZones("", kScheduleAnyway)})),
      UnorderedElementsAre(Pair("a1", 100), Pair("a2", 100), Pair("b1", 100), Pair("plain", 0)));
}

TEST_F(SpreadTest, ScoresPerNodeCountThePodsOfTheNodeAlone) {
  AddZones();
  Place("a1", 3);
  Place("a2", 1);
  // 3 nodes: ln 5 = 1.61, so 5, 2 and 0.
  EXPECT_THAT(Scores(Wanted({OverZones("", kScheduleAnyway, "kubernetes.io/hostname")})),
              UnorderedElementsAre(Pair("a1", 0), Pair("a2", 60), Pair("b1", 100)));
}

TEST_F(SpreadTest, ScoresIgnoreNodesThatThePoliciesExclude) {
  AddZones();
  AddNode("a3", R"({"zone":"a"})", R"({"taints":[{"key":"k","effect":"NoSchedule"}]})");
  Place("a3", 4);
  Place("b1", 1);
  const auto scores = [&](const char* policy) {
    auto found = Scores(Wanted({OverZones(policy, kScheduleAnyway)}));
    return std::pair(found["a1"], found["b1"]);
  };
  EXPECT_LT(scores("").first, scores("").second);
  EXPECT_GT(scores(R"(,"nodeTaintsPolicy":"Honor")").first,
            scores(R"(,"nodeTaintsPolicy":"Honor")").second);
}

TEST_F(SpreadTest, HardConstraintsAloneHaveNoScore) {
  AddZones();
  Place("a1", 1);
  EXPECT_THAT(Scores(Wanted({OverZones()})), IsEmpty());
}

TEST_F(SpreadTest, OnlyEventsThatChangeTheSpreadHelp) {
  const PodInfoPtr pod = Wanted({OverZones()}, kApp, R"(,"nodeSelector":{"pool":"x"})");
  const PodInfoPtr by_taints = Wanted({OverZones(R"(,"nodeTaintsPolicy":"Honor")")});
  const auto node = [](const char* labels) {
    return Parse(StrCat(R"({"metadata":{"name":"n","labels":)", labels, "}}"));
  };
  const auto other = [](const char* ns, const char* labels, const char* more = "") {
    return Parse(StrCat(R"({"metadata":{"namespace":")", ns, R"(","name":"o","labels":)", labels,
                        more, "}}"));
  };
  constexpr char kDeleted[] = R"(,"deletionTimestamp":"2025-01-01T00:00:00Z")";
  const auto helps = [&](EventKind kind, api::ObjectPtr before, api::ObjectPtr after) {
    return plugin_.MayHelp(*pod, {kind, std::move(before), std::move(after), {}});
  };
  EXPECT_TRUE(helps(EventKind::kNodeAdd, nullptr, node(R"({"zone":"c"})")));
  EXPECT_FALSE(helps(EventKind::kNodeAdd, nullptr, node("{}")));
  EXPECT_TRUE(helps(EventKind::kNodeRemove, node(R"({"zone":"c"})"), nullptr));
  EXPECT_FALSE(helps(EventKind::kNodeRemove, node("{}"), nullptr));
  EXPECT_TRUE(helps(EventKind::kNodeLabel, node("{}"), node(R"({"zone":"c"})")));
  EXPECT_TRUE(helps(EventKind::kNodeLabel, node(R"({"zone":"c"})"), node(R"({"zone":"d"})")));
  EXPECT_FALSE(helps(EventKind::kNodeLabel, node(R"({"x":"1"})"), node(R"({"x":"2"})")));
  EXPECT_TRUE(helps(EventKind::kNodeLabel, node(R"({"pool":"y"})"), node(R"({"pool":"x"})")));
  EXPECT_TRUE(helps(EventKind::kBoundPodAdd, nullptr, other("ns", kApp)));
  EXPECT_FALSE(helps(EventKind::kBoundPodAdd, nullptr, other("ns", "{}")));
  EXPECT_FALSE(helps(EventKind::kBoundPodAdd, nullptr, other("elsewhere", kApp)));
  EXPECT_TRUE(helps(EventKind::kBoundPodLabel, other("ns", kApp), other("ns", "{}")));
  EXPECT_TRUE(helps(EventKind::kBoundPodLabel, other("ns", "{}"), other("ns", kApp)));
  EXPECT_TRUE(helps(EventKind::kBoundPodLabel, other("ns", kApp), other("ns", kApp, kDeleted)));
  EXPECT_FALSE(helps(EventKind::kBoundPodLabel, other("ns", "{}"), other("ns", "{}")));
  EXPECT_TRUE(helps(EventKind::kBoundPodRemove, other("ns", kApp, kDeleted), nullptr));
  EXPECT_FALSE(helps(EventKind::kBoundPodRemove, other("elsewhere", kApp), nullptr));
  EXPECT_FALSE(helps(EventKind::kBoundPodRemove, other("ns", "{}"), nullptr));
  EXPECT_FALSE(helps(EventKind::kNodeTaint, node("{}"), node("{}")));
  EXPECT_TRUE(plugin_.MayHelp(*by_taints, {EventKind::kNodeTaint, node("{}"), node("{}"), {}}));
  EXPECT_TRUE(helps(EventKind::kTargetPodChange, pod->pod, pod->pod));
}

TEST_F(SpreadTest, AnEventNeedConcernOnlyOneOfTheConstraints) {
  const std::string db = R"({"maxSkew":1,"topologyKey":"rack","whenUnsatisfiable":"DoNotSchedule",
      "nodeAffinityPolicy":"Ignore","nodeTaintsPolicy":"Honor","labelSelector":{"matchLabels":{
      "app":"db"}}})";
  const auto object = [](const char* labels) {
    return Parse(StrCat(R"({"metadata":{"namespace":"ns","name":"o","labels":)", labels, "}}"));
  };
  for (const auto& constraints :
       {std::vector<std::string>{OverZones(), db}, std::vector<std::string>{db, OverZones()}}) {
    const PodInfoPtr pod = Wanted(constraints, kApp, R"(,"nodeSelector":{"pool":"x"})");
    const auto helps = [&](EventKind kind, api::ObjectPtr before, api::ObjectPtr after) {
      return plugin_.MayHelp(*pod, {kind, std::move(before), std::move(after), {}});
    };
    for (const char* labels : {kApp, R"({"app":"db"})"}) {
      EXPECT_TRUE(helps(EventKind::kBoundPodAdd, nullptr, object(labels))) << labels;
      EXPECT_TRUE(helps(EventKind::kBoundPodRemove, object(labels), nullptr)) << labels;
      EXPECT_TRUE(helps(EventKind::kBoundPodLabel, object(labels), object("{}"))) << labels;
    }
    EXPECT_TRUE(helps(EventKind::kNodeLabel, object("{}"), object(R"({"zone":"a"})")));
    EXPECT_TRUE(helps(EventKind::kNodeLabel, object("{}"), object(R"({"rack":"1"})")));
    EXPECT_TRUE(helps(EventKind::kNodeLabel, object("{}"), object(R"({"pool":"x"})")));
    EXPECT_TRUE(helps(EventKind::kNodeTaint, object("{}"), object("{}")));
    EXPECT_FALSE(helps(EventKind::kNodeAdd, nullptr, object(R"({"zone":"a"})")))
        << "a node counts only if it has the keys of all";
    EXPECT_TRUE(helps(EventKind::kNodeAdd, nullptr, object(R"({"zone":"a","rack":"1"})")));
    EXPECT_FALSE(helps(EventKind::kNodeRemove, object(R"({"rack":"1"})"), nullptr));
  }
}

TEST_F(SpreadTest, AConstraintThatCannotBeReadIsAnErrorOrHasNoScore) {
  AddZones();
  const auto broken = [](std::string_view when) {
    return StrCat(R"({"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":")", when,
                  R"(","labelSelector":{"matchExpressions":[{"key":"a","operator":"Near"}]}})");
  };
  Cycle cycle;
  cycle.pod = Wanted({broken(kDoNotSchedule)});
  const Status status = plugin_.PreFilter(cycle);
  EXPECT_EQ(status.code, Code::kError);
  EXPECT_TRUE(status.Message().starts_with("topology spread: ")) << status.Message();
  EXPECT_FALSE(plugin_.MayHelp(*cycle.pod, {EventKind::kNodeTaint, nullptr, nullptr, {}}));
  cycle.pod = Wanted({broken(kScheduleAnyway)});
  EXPECT_TRUE(plugin_.PreFilter(cycle).ok());
  const std::vector<NodeIndex> nodes = {0, 1, 2};
  std::vector<std::int64_t> scores(3, -1);
  EXPECT_FALSE(plugin_.Score(cycle, nodes, scores));
}

// Tests with the whole scheduler.
class SpreadClusterTest : public ::testing::Test {
 protected:
  void CreatePod(const std::string& name, std::string labels = kApp) {
    cluster_.Create("Pod", StrCat(R"({"metadata":{"name":")", name, R"(","labels":)", labels,
                                  R"(},"spec":{"containers":[{"name":"c","image":"i"}],)",
                                  R"("topologySpreadConstraints":[)", OverZones(), "]}}"));
  }
  TestCluster cluster_;
};

TEST_F(SpreadClusterTest, PodsAreSpreadOverZonesAndWaitForRoomInTheEmptyOne) {
  cluster_.CreateNode("a", R"({"zone":"a"})");
  cluster_.CreateNode("b", R"({"zone":"b"})");
  cluster_.StartScheduler();
  std::map<std::string, int> per_node;
  for (int i = 0; i < 6; ++i) {
    CreatePod(StrCat("p", i));
    cluster_.Settle();
    ++per_node[cluster_.NodeOf(StrCat("p", i))];
  }
  EXPECT_THAT(per_node, UnorderedElementsAre(Pair("a", 3), Pair("b", 3)));
  // Zone b accepts no more pods: one more pod may go to zone a, the next has to wait.
  cluster_.Update("Node", "b", "", [](api::Draft& node) { node["spec"]["unschedulable"] = true; });
  cluster_.Settle();
  CreatePod("p6");
  cluster_.Settle();
  EXPECT_EQ(cluster_.NodeOf("p6"), "a");
  CreatePod("p7");
  cluster_.Settle();
  EXPECT_EQ(cluster_.NodeOf("p7"), "");
  EXPECT_EQ(cluster_.ConditionMessage("p7"),
            "0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, 1 "
            "node(s) were unschedulable.");
  // It fits as soon as a pod in zone a is deleted.
  cluster_.Delete("Pod", "p6");
  cluster_.LetPauseEnd();
  EXPECT_EQ(cluster_.NodeOf("p7"), "a");
}

TEST_F(SpreadClusterTest, ANewZoneAndARelabelledPodWakeAWaitingPod) {
  cluster_.CreateNode("a", R"({"zone":"a"})");
  cluster_.CreateNode("b", R"({"zone":"b"})", R"({"unschedulable":true})");
  cluster_.StartScheduler();
  CreatePod("p0");
  cluster_.Settle();
  EXPECT_EQ(cluster_.NodeOf("p0"), "a");
  CreatePod("p1");
  CreatePod("p2");
  cluster_.Settle();
  EXPECT_EQ(cluster_.NodeOf("p1"), "");
  cluster_.Update("Pod", "p0", "",
                  [](api::Draft& pod) { pod["metadata"]["labels"].Entry("app") = "other"; });
  cluster_.LetPauseEnd();
  EXPECT_EQ(cluster_.NodeOf("p1"), "a");
  EXPECT_EQ(cluster_.NodeOf("p2"), "");
  cluster_.CreateNode("c", R"({"zone":"c"})");
  cluster_.LetPauseEnd();
  EXPECT_EQ(cluster_.NodeOf("p2"), "c");
}

}  // namespace
}  // namespace drakkar::scheduler
