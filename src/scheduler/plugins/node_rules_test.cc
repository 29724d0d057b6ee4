// The rules of the plugins that look at nodes alone: which nodes they remove, why, how they score
// the others, and which events help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"
#include "scheduler/plugins/node_affinity/node_affinity.h"
#include "scheduler/plugins/node_name/node_name.h"
#include "scheduler/plugins/node_ports/node_ports.h"
#include "scheduler/plugins/node_resources/node_resources_balanced.h"
#include "scheduler/plugins/node_resources/node_resources_fit.h"
#include "scheduler/plugins/node_unschedulable/node_unschedulable.h"
#include "scheduler/plugins/taint_toleration/taint_toleration.h"
#include "scheduler/testing/test_context.h"

namespace drakkar::scheduler {
namespace {

using ::testing::ElementsAre;

api::ObjectPtr Parse(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return std::make_shared<const api::Object>(*tree);
}

class NodeRules : public ::testing::Test {
 protected:
  explicit NodeRules(FeatureGates gates = {}) : world_(std::move(gates)) {}

  // `spec`, `labels` and `allocatable` are members of those objects.
  static api::ObjectPtr Node(std::string name, std::string spec = "", std::string labels = "",
                             std::string allocatable = R"("pods":"9")") {
    return Parse(StrCat(R"({"metadata":{"name":")", name, R"(","labels":{)", labels,
                        R"(}},"spec":{)", spec, R"(},"status":{"allocatable":{)", allocatable,
                        "}}}"));
  }
  NodeIndex Add(std::string name, std::string spec = "", std::string labels = "",
                std::string allocatable = R"("pods":"9")") {
    return world_.AddNode(Node(name, spec, labels, allocatable));
  }
  static api::ObjectPtr PodObject(std::string spec, std::string name = "p") {
    return Parse(StrCat(R"({"metadata":{"namespace":"d","name":")", name, R"(","uid":")", name,
                        R"("},"spec":{)", spec, "}}"));
  }
  static PodInfoPtr Pod(std::string spec, std::string name = "p") {
    return MakePodInfo(PodObject(std::move(spec), std::move(name)));
  }
  static std::string Requests(std::string requests) {
    return StrCat(R"("containers":[{"resources":{"requests":{)", requests, "}}}]");
  }
  Cycle& CycleOf(std::string spec) {
    cycle_ = std::make_unique<Cycle>();
    cycle_->pod = Pod(std::move(spec));
    return *cycle_;
  }
  // Names of the nodes that are left, "|", and the reasons for the others.
  std::string Filter(Plugin& plugin, std::string spec) {
    Cycle& cycle = CycleOf(std::move(spec));
    NodeSet left = world_.nodes.known();
    EXPECT_TRUE(plugin.Filter(cycle, left).ok());
    std::vector<std::string> names;
    left.ForEach([&](NodeIndex node) { names.push_back(world_.nodes.name(node)); });
    NodeSet rejected = world_.nodes.known();
    rejected.RemoveAll(left);
    Diagnosis diagnosis;
    if (!rejected.IsEmpty()) plugin.Explain(cycle, rejected, diagnosis);
    std::vector<std::string> reasons;
    for (const auto& [reason, count] : diagnosis.reasons()) {
      reasons.push_back(StrCat(count, " ", reason));
    }
    return StrCat(Join(names, " "), "|", Join(reasons, "; "));
  }
  // The scores of all nodes; empty if they do not differ.
  std::vector<std::int64_t> Scores(Plugin& plugin, std::string spec) {
    std::vector<NodeIndex> nodes;
    world_.nodes.known().ForEach([&](NodeIndex node) { nodes.push_back(node); });
    std::vector<std::int64_t> scores(nodes.size(), -1);
    if (!plugin.Score(CycleOf(std::move(spec)), nodes, scores)) scores.clear();
    return scores;
  }
  static bool Helps(Plugin& plugin, std::string spec, EventKind kind, api::ObjectPtr before,
                    api::ObjectPtr after) {
    return plugin.MayHelp(*Pod(std::move(spec)), {kind, std::move(before), std::move(after), {}});
  }

  TestContext world_;
  std::unique_ptr<Cycle> cycle_;
};

TEST_F(NodeRules, ResourcesMustBeFreeEachOfThem) {
  const char* const full =
      R"("pods":"9","cpu":"4","memory":"40","ephemeral-storage":"400","example.com/x":"4")";
  NodeResourcesFit plugin(world_.context);
  Add("full", "", "", full);
  Add("no-cpu", "", "",
      R"("pods":"9","memory":"40","ephemeral-storage":"400","example.com/x":"4")");
  Add("no-memory", "", "", R"("pods":"9","cpu":"4","ephemeral-storage":"400","example.com/x":"4")");
  Add("no-storage", "", "", R"("pods":"9","cpu":"4","memory":"40","example.com/x":"4")");
  Add("no-x", "", "", R"("pods":"9","cpu":"4","memory":"40","ephemeral-storage":"400")");
  Add("no-pods", "", "",
      R"("cpu":"4","memory":"40","ephemeral-storage":"400","example.com/x":"4")");
  EXPECT_EQ(Filter(plugin, Requests("")), "full no-cpu no-memory no-storage no-x|1 Too many pods");
  EXPECT_EQ(Filter(plugin, Requests(R"("cpu":"4","memory":"40","ephemeral-storage":"400",
      "example.com/x":"4")")),
            "full|1 Insufficient cpu; 1 Insufficient ephemeral-storage; 1 Insufficient "
            "example.com/x; 1 Insufficient memory; 1 Too many pods");
  EXPECT_EQ(Filter(plugin, Requests(R"("cpu":"4001m")")), "|6 Insufficient cpu; 1 Too many pods");
  EXPECT_EQ(Filter(plugin, Requests(R"("memory":"41")")),
            "|6 Insufficient memory; 1 Too many pods");
  EXPECT_EQ(Filter(plugin, Requests(R"("ephemeral-storage":"401")")),
            "|6 Insufficient ephemeral-storage; 1 Too many pods");
  EXPECT_EQ(Filter(plugin, Requests(R"("example.com/x":"5")")),
            "|6 Insufficient example.com/x; 1 Too many pods");
}

TEST_F(NodeRules, ManyNodesAreFilteredAlike) {
  NodeResourcesFit plugin(world_.context);
  for (int i = 0; i < 130; ++i) {
    Add(StrCat("n", i), "", "", StrCat(R"("pods":"9","cpu":")", i % 2 == 0 ? 1 : 2, "\""));
  }
  Cycle& cycle = CycleOf(Requests(R"("cpu":"2")"));
  NodeSet left = world_.nodes.known();
  ASSERT_TRUE(plugin.Filter(cycle, left).ok());
  EXPECT_EQ(left.Count(), 65u);
  for (NodeIndex i = 0; i < 130; ++i) EXPECT_EQ(left.Contains(i), i % 2 == 1) << i;
}

TEST_F(NodeRules, ResourcesKeptForNominatedPodsAreNamed) {
  NodeResourcesFit plugin(world_.context);
  const NodeIndex a = Add("a", "", "", R"("pods":"9","cpu":"4","memory":"10","example.com/x":"4")");
  Add("b", "", "", R"("pods":"9","cpu":"1","memory":"10","example.com/x":"4")");
  world_.nodes.AddNominated(a, Pod(Requests(R"("cpu":"3","memory":"9","example.com/x":"3")"), "q"));
  EXPECT_EQ(Filter(plugin, Requests(R"("cpu":"2","memory":"20","example.com/x":"2")")),
            "|1 Insufficient cpu; 1 Insufficient cpu (room is kept for nominated pod d/q); "
            "1 Insufficient example.com/x (room is kept for nominated pod d/q); "
            "2 Insufficient memory");
  EXPECT_EQ(Filter(plugin, Requests(R"("cpu":"1")")), "a b|");
  EXPECT_EQ(Filter(plugin, Requests(R"("example.com/x":"2")")),
            "b|1 Insufficient example.com/x (room is kept for nominated pod d/q)");
}

TEST_F(NodeRules, IgnoredResourcesAndGroupsNeedNotBeFree) {
  NodeResourcesFitArgs args;
  args.ignored_resources = {"example.com/x", "other.com/z"};
  args.ignored_groups = {"ignored.com"};
  NodeResourcesFit plugin(world_.context, args);
  Add("n");
  EXPECT_EQ(
      Filter(plugin, Requests(R"("example.com/x":"1","other.com/z":"1","ignored.com/a":"1")")),
      "n|");
  EXPECT_EQ(Filter(plugin, Requests(R"("example.com/y":"1")")), "|1 Insufficient example.com/y");
  const api::ObjectPtr node = Node("m");
  EXPECT_TRUE(
      Helps(plugin, Requests(R"("ignored.com/a":"1")"), EventKind::kNodeAdd, nullptr, node));
  EXPECT_FALSE(
      Helps(plugin, Requests(R"("example.com/y":"1")"), EventKind::kNodeAdd, nullptr, node));
}

TEST_F(NodeRules, ANodeHelpsAPodOnlyIfItIsLargeEnough) {
  NodeResourcesFit plugin(world_.context);
  const std::string wanted =
      Requests(R"("cpu":"2","memory":"20","ephemeral-storage":"200","example.com/x":"2",
      "example.com/y":"1")");
  const auto helps = [&](std::string allocatable) {
    const api::ObjectPtr node = Node("n", "", "", std::move(allocatable));
    const bool added = Helps(plugin, wanted, EventKind::kNodeAdd, nullptr, node);
    EXPECT_EQ(added, Helps(plugin, wanted, EventKind::kNodeAllocatable, node, node));
    return added;
  };
  EXPECT_TRUE(helps(R"("pods":"1","cpu":"2","memory":"20","ephemeral-storage":"200",
      "example.com/x":"2","example.com/y":"1")"));
  for (
      const char* lacking : {
          R"("pods":"0","cpu":"2","memory":"20","ephemeral-storage":"200","example.com/x":"2","example.com/y":"1")",
          R"("pods":"1","cpu":"1","memory":"20","ephemeral-storage":"200","example.com/x":"2","example.com/y":"1")",
          R"("pods":"1","cpu":"2","memory":"19","ephemeral-storage":"200","example.com/x":"2","example.com/y":"1")",
          R"("pods":"1","cpu":"2","memory":"20","ephemeral-storage":"199","example.com/x":"2","example.com/y":"1")",
          R"("pods":"1","cpu":"2","memory":"20","ephemeral-storage":"200","example.com/x":"1","example.com/y":"1")",
          R"("pods":"1","cpu":"2","memory":"20","ephemeral-storage":"200","example.com/x":"2")",
      }) {
    EXPECT_FALSE(helps(lacking)) << lacking;
  }
  for (const EventKind kind : {EventKind::kBoundPodRemove, EventKind::kBoundPodShrink}) {
    EXPECT_TRUE(Helps(plugin, wanted, kind, PodObject(""), nullptr));
  }
  EXPECT_FALSE(
      Helps(plugin, wanted, EventKind::kTargetPodChange, PodObject(wanted), PodObject(wanted)));
  EXPECT_TRUE(Helps(plugin, wanted, EventKind::kTargetPodChange,
                    PodObject(Requests(R"("cpu":"3")")), PodObject(wanted)));
}

TEST_F(NodeRules, EmptierNodesScoreHigherByDefault) {
  NodeResourcesFit plugin(world_.context);
  Add("half", "", "", R"("pods":"9","cpu":"2","memory":"200")");
  Add("quarter", "", "", R"("pods":"9","cpu":"4","memory":"400")");
  Add("too-small", "", "", R"("pods":"9","cpu":"500m","memory":"200")");
  Add("cpu-only", "", "", R"("pods":"9","cpu":"4")");
  Add("nothing");
  EXPECT_THAT(Scores(plugin, Requests(R"("cpu":"1","memory":"100")")),
              ElementsAre(50, 75, 25, 75, 0));
}

TEST_F(NodeRules, FullerNodesScoreHigherIfTheProfileSaysSo) {
  NodeResourcesFitArgs args;
  args.scoring.most_allocated = true;
  args.scoring.resources = {
      {"cpu", 3}, {"memory", 1}, {"ephemeral-storage", 1}, {"example.com/x", 1}};
  NodeResourcesFit plugin(world_.context, args);
  const NodeIndex n = Add("n", "", "",
                          R"("pods":"9","cpu":"4","memory":"100","ephemeral-storage":"100",
                          "example.com/x":"4")");
  Add("nothing");
  // (3 * 25 + 50) / 4
  EXPECT_THAT(Scores(plugin, Requests(R"("cpu":"1","memory":"50")")), ElementsAre(31, 0));
  // (3 * 25 + 50 + 100 + 50) / 6
  EXPECT_THAT(Scores(plugin, Requests(R"("cpu":"1","memory":"50","ephemeral-storage":"100",
      "example.com/x":"2")")),
              ElementsAre(45, 0));
  world_.nodes.AddPod(n, *Pod(Requests(R"("cpu":"1","memory":"50","ephemeral-storage":"50",
      "example.com/x":"1")")));
  // (3 * 50 + 100 + 75 + 75) / 6
  EXPECT_THAT(Scores(plugin, Requests(R"("cpu":"1","memory":"80","ephemeral-storage":"25",
      "example.com/x":"2")")),
              ElementsAre(66, 0));
}

TEST_F(NodeRules, LeastAllocatedMayWeighOtherResources) {
  NodeResourcesFitArgs args;
  args.scoring.resources = {{"memory", 1}, {"example.com/x", 3}};
  NodeResourcesFit plugin(world_.context, args);
  Add("n", "", "", R"("pods":"9","cpu":"4","memory":"100","example.com/x":"4")");
  Add("small", "", "", R"("pods":"9","cpu":"4","memory":"100","example.com/x":"1")");
  // (75 + 3 * 50) / 4, and (75 + 3 * 0) / 4
  EXPECT_THAT(Scores(plugin, Requests(R"("cpu":"1","memory":"25","example.com/x":"2")")),
              ElementsAre(56, 18));
}

TEST_F(NodeRules, AShapeIsInterpolatedAndRoundedAndZeroDoesNotCount) {
  NodeResourcesFitArgs args;
  args.scoring.shape = {{20, 0}, {60, 80}, {80, 20}};
  args.scoring.resources = {{"cpu", 1}, {"memory", 2}};
  NodeResourcesFit plugin(world_.context, args);
  const std::pair<const char*, std::int64_t> cases[] = {
      // utilization of cpu and memory in percent
      {R"("cpu":"10m","memory":"60")", 80},  // cpu scores nothing, so only memory counts
      {R"("cpu":"40m","memory":"60")", 67},  // (40 + 2 * 80) / 3, rounded
      {R"("cpu":"70m","memory":"60")", 70},  // (50 + 2 * 80) / 3
      {R"("cpu":"90m","memory":"200")", 20}, {R"("cpu":"20m","memory":"20")", 0},
      {R"("cpu":"60m","memory":"80")", 40},
  };
  Add("n", "", "", R"("pods":"9","cpu":"100m","memory":"100")");
  for (const auto& [requests, score] : cases) {
    EXPECT_THAT(Scores(plugin, Requests(requests)), ElementsAre(score)) << requests;
  }
}

TEST_F(NodeRules, BalancedNodesScoreHigher) {
  NodeResourcesBalanced plugin(world_.context);
  Add("balanced", "", "", R"("pods":"9","cpu":"4","memory":"4")");
  Add("unbalanced", "", "", R"("pods":"9","cpu":"2","memory":"4")");
  Add("overfull", "", "", R"("pods":"9","cpu":"500m","memory":"4")");
  Add("no-cpu", "", "", R"("pods":"9","memory":"4")");
  EXPECT_THAT(Scores(plugin, Requests(R"("cpu":"1","memory":"1")")), ElementsAre(100, 87, 62, 87));
  EXPECT_THAT(Scores(plugin, Requests(R"("memory":"1")")), ElementsAre(87, 87, 87, 87));
  EXPECT_THAT(Scores(plugin, Requests("")), ElementsAre()) << "nothing to balance";
}

TEST_F(NodeRules, HostPortsMustBeFreeEachOfThem) {
  NodePorts plugin(world_.context);
  const auto ports = [](std::vector<int> numbers) {
    std::vector<std::string> list;
    for (const int number : numbers) list.push_back(StrCat(R"({"hostPort":)", number, "}"));
    return StrCat(R"("containers":[{"ports":[)", Join(list, ","), "]}]");
  };
  const NodeIndex a = Add("a");
  const NodeIndex b = Add("b");
  Add("c");
  world_.nodes.AddPod(a, *Pod(ports({80, 81})));
  world_.nodes.AddNominated(b, Pod(ports({90, 91}), "q"));
  EXPECT_EQ(Filter(plugin, ports({70, 71})), "a b c|");
  constexpr char kReason[] = "1 node(s) didn't have free ports for the requested pod ports";
  EXPECT_EQ(Filter(plugin, ports({70, 81})), StrCat("b c|", kReason));
  EXPECT_EQ(Filter(plugin, ports({70, 91})),
            StrCat("a c|", kReason, " (room is kept for nominated pod d/q)"));
  EXPECT_EQ(Filter(plugin, ports({91, 80})),
            StrCat("c|", kReason, "; ", kReason, " (room is kept for nominated pod d/q)"));
  EXPECT_TRUE(plugin.PreFilter(CycleOf("")).IsSkip());
  EXPECT_TRUE(plugin.PreFilter(CycleOf(ports({1}))).ok());
  EXPECT_TRUE(Helps(plugin, ports({1}), EventKind::kNodeAdd, nullptr, Node("n")));
  EXPECT_TRUE(
      Helps(plugin, ports({1, 2}), EventKind::kBoundPodRemove, PodObject(ports({3, 2})), nullptr));
  EXPECT_FALSE(
      Helps(plugin, ports({1, 2}), EventKind::kBoundPodRemove, PodObject(ports({3})), nullptr));
}

TEST_F(NodeRules, EveryTaintMustBeTolerated) {
  TaintToleration plugin(world_.context);
  const auto taints = [](std::string list) { return StrCat(R"("taints":[)", list, "]"); };
  constexpr char kA[] = R"({"key":"a","value":"1","effect":"NoSchedule"})";
  constexpr char kB[] = R"({"key":"b","effect":"NoExecute"})";
  constexpr char kSoft[] = R"({"key":"s","effect":"PreferNoSchedule"})";
  Add("a", taints(kA));
  Add("ab", taints(StrCat(kA, ",", kB)));
  Add("soft", taints(kSoft));
  Add("a2", taints(kA));
  Add("free");
  EXPECT_EQ(Filter(plugin, ""), "soft free|3 node(s) had untolerated taint {a: 1}");
  EXPECT_EQ(Filter(plugin, R"("tolerations":[{"key":"a","operator":"Exists"}])"),
            "a soft a2 free|1 node(s) had untolerated taint {b: }");
  EXPECT_EQ(Filter(plugin, R"("tolerations":[{"key":"b","operator":"Exists"},{"key":"a",
      "operator":"Exists"}])"),
            "a ab soft a2 free|");
}

constexpr char kAbove90[] = R"("tolerations":[{"key":"sla","operator":"Gt","value":"90"}])";

std::string SlaTaint(std::string value) {
  return StrCat(R"("taints":[{"key":"sla","value":")", value, R"(","effect":"NoSchedule"}])");
}

TEST_F(NodeRules, TaintsAreNotComparedWhileTheGateIsOff) {
  TaintToleration plugin(world_.context);
  Add("a", SlaTaint("95"));
  EXPECT_EQ(Filter(plugin, kAbove90), "|1 node(s) had untolerated taint {sla: 95}");
  EXPECT_FALSE(
      Helps(plugin, kAbove90, EventKind::kNodeTaint, Node("n"), Node("n", SlaTaint("91"))));
}

class ComparingNodeRules : public NodeRules {
 protected:
  ComparingNodeRules()
      : NodeRules(FeatureGates().With(Gate::kTaintTolerationComparisonOperators, true)) {}
};

TEST_F(ComparingNodeRules, TaintsAreCompared) {
  TaintToleration plugin(world_.context);
  Add("a", SlaTaint("95"));
  Add("b", SlaTaint("90"));
  Add("c", SlaTaint("none"));
  EXPECT_EQ(Filter(plugin, kAbove90),
            "a|1 node(s) had untolerated taint {sla: 90}; 1 node(s) had untolerated taint {sla: "
            "none}");
  EXPECT_EQ(Filter(plugin, R"("tolerations":[{"key":"sla","operator":"Lt","value":"95"}])"),
            "b|1 node(s) had untolerated taint {sla: 95}; 1 node(s) had untolerated taint {sla: "
            "none}");
  EXPECT_TRUE(Helps(plugin, kAbove90, EventKind::kNodeTaint, Node("n"), Node("n", SlaTaint("91"))));
}

TEST_F(NodeRules, NodesWithFewerSoftTaintsScoreHigher) {
  TaintToleration plugin(world_.context);
  const auto soft = [](std::string keys) {
    std::vector<std::string> list;
    for (const char key : keys) {
      list.push_back(
          StrCat(R"({"key":")", std::string(1, key), R"(","effect":"PreferNoSchedule"})"));
    }
    return StrCat(R"("taints":[)", Join(list, ","), "]");
  };
  Add("none");
  Add("one", soft("a"));
  Add("hard", R"("taints":[{"key":"h","effect":"NoSchedule"}])");
  EXPECT_THAT(Scores(plugin, R"("tolerations":[{"operator":"Exists"}])"), ElementsAre());
  EXPECT_THAT(Scores(plugin, ""), ElementsAre(100, 0, 100));
  Add("four", soft("abcd"));
  EXPECT_THAT(Scores(plugin, ""), ElementsAre(100, 75, 100, 0));
  EXPECT_THAT(Scores(plugin, R"("tolerations":[{"key":"b","operator":"Exists"},{"key":"c",
      "operator":"Exists"}])"),
              ElementsAre(100, 50, 100, 0));
  world_.placements.RemoveNode("one");
  world_.placements.RemoveNode("four");
  EXPECT_THAT(Scores(plugin, ""), ElementsAre()) << "no node has any";
}

TEST_F(NodeRules, ChangedTaintsAndTolerationsHelpIfTheyMatch) {
  TaintToleration plugin(world_.context);
  const api::ObjectPtr tainted = Node("n", R"("taints":[{"key":"a","effect":"NoSchedule"}])");
  const api::ObjectPtr free = Node("n");
  constexpr char kTolerates[] = R"("tolerations":[{"key":"a","operator":"Exists"}])";
  for (const EventKind kind : {EventKind::kNodeAdd, EventKind::kNodeTaint}) {
    EXPECT_FALSE(Helps(plugin, "", kind, nullptr, tainted));
    EXPECT_TRUE(Helps(plugin, "", kind, nullptr, free));
    EXPECT_TRUE(Helps(plugin, kTolerates, kind, nullptr, tainted));
  }
  EXPECT_TRUE(
      Helps(plugin, kTolerates, EventKind::kTargetPodChange, PodObject(""), PodObject(kTolerates)));
  EXPECT_FALSE(Helps(plugin, kTolerates, EventKind::kTargetPodChange, PodObject(kTolerates),
                     PodObject(kTolerates)));
}

TEST_F(NodeRules, CordonedNodesTakeOnlyPodsThatTolerateIt) {
  NodeUnschedulable plugin(world_.context);
  Add("cordoned", R"("unschedulable":true)");
  Add("open");
  constexpr char kTolerates[] =
      R"("tolerations":[{"key":"node.kubernetes.io/unschedulable","operator":"Exists"}])";
  EXPECT_EQ(Filter(plugin, ""), "open|1 node(s) were unschedulable");
  EXPECT_EQ(Filter(plugin, kTolerates), "cordoned open|");
  const api::ObjectPtr cordoned = Node("n", R"("unschedulable":true)");
  EXPECT_FALSE(Helps(plugin, "", EventKind::kNodeTaint, Node("n"), cordoned));
  EXPECT_TRUE(Helps(plugin, kTolerates, EventKind::kNodeTaint, Node("n"), cordoned));
  EXPECT_TRUE(Helps(plugin, "", EventKind::kNodeTaint, cordoned, Node("n")));
  EXPECT_TRUE(Helps(plugin, "", EventKind::kNodeAdd, nullptr, Node("n")));
  EXPECT_FALSE(
      Helps(plugin, "", EventKind::kTargetPodChange, PodObject(kTolerates), PodObject("")));
  EXPECT_TRUE(
      Helps(plugin, kTolerates, EventKind::kTargetPodChange, PodObject(""), PodObject(kTolerates)));
}

TEST_F(NodeRules, APodThatNamesItsNodeFitsNowhereElse) {
  NodeName plugin(world_.context);
  Add("a");
  Add("b");
  constexpr char kB[] = R"("nodeName":"b")";
  EXPECT_TRUE(plugin.PreFilter(CycleOf("")).IsSkip());
  EXPECT_TRUE(plugin.PreFilter(CycleOf(kB)).ok());
  EXPECT_EQ(Filter(plugin, kB), "b|1 node(s) didn't match the requested node name");
  EXPECT_EQ(Filter(plugin, R"("nodeName":"gone")"),
            "|2 node(s) didn't match the requested node name");
  Cycle& cycle = CycleOf(kB);
  NodeSet left = world_.nodes.known();
  left.Remove(world_.nodes.Find("b"));
  ASSERT_TRUE(plugin.Filter(cycle, left).ok());
  EXPECT_TRUE(left.IsEmpty()) << "another filter has rejected it";
  EXPECT_TRUE(Helps(plugin, kB, EventKind::kNodeAdd, nullptr, Node("b")));
  EXPECT_FALSE(Helps(plugin, kB, EventKind::kNodeAdd, nullptr, Node("c")));
}

std::string Preferred(std::string key, int weight) {
  return StrCat(R"({"weight":)", weight, R"(,"preference":{"matchExpressions":[{"key":")", key,
                R"(","operator":"Exists"}]}})");
}

TEST_F(NodeRules, PreferredAffinityAddsUpWeights) {
  NodeAffinity plugin(world_.context);
  Add("none");
  Add("a", "", R"("a":"1")");
  Add("ab", "", R"("a":"1","b":"1")");
  const auto pod = [](std::string list) {
    return StrCat(
        R"("affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[)", list,
        "]}}");
  };
  EXPECT_THAT(Scores(plugin, pod(StrCat(Preferred("a", 10), ",", Preferred("b", 30)))),
              ElementsAre(0, 25, 100));
  EXPECT_THAT(Scores(plugin, pod(Preferred("c", 10))), ElementsAre()) << "no node has it";
  EXPECT_THAT(Scores(plugin, pod(Preferred("a", 0))), ElementsAre());
  EXPECT_THAT(Scores(plugin, ""), ElementsAre());
  EXPECT_TRUE(plugin.PreFilter(CycleOf("")).IsSkip());
  EXPECT_TRUE(plugin.PreFilter(CycleOf(pod(""))).ok());
  EXPECT_TRUE(plugin.PreFilter(CycleOf(R"("nodeSelector":{"a":"1"})")).ok());
}

TEST_F(NodeRules, AnAddedAffinityCountsBesideThePods) {
  NodeAffinityArgs args;
  args.added_affinity =
      Parse(StrCat(R"({"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[)",
                   R"({"matchExpressions":[{"key":"a","operator":"Exists"}]}]},)",
                   R"("preferredDuringSchedulingIgnoredDuringExecution":[)", Preferred("b", 10),
                   "]}"))
          ->tree();
  NodeAffinity plugin(world_.context, args);
  Add("none");
  Add("a", "", R"("a":"1")");
  Add("ab", "", R"("a":"1","b":"1")");
  EXPECT_TRUE(plugin.PreFilter(CycleOf("")).ok()) << "it applies to every pod";
  EXPECT_EQ(Filter(plugin, ""), "a ab|1 node(s) didn't match scheduler-enforced node affinity");
  EXPECT_EQ(Filter(plugin, R"("nodeSelector":{"b":"1"})"),
            "ab|1 node(s) didn't match Pod's node affinity/selector; "
            "1 node(s) didn't match scheduler-enforced node affinity");
  EXPECT_THAT(Scores(plugin, ""), ElementsAre(0, 0, 100));
  const auto helps = [&](std::string spec, std::string labels) {
    return Helps(plugin, std::move(spec), EventKind::kNodeLabel, Node("n"),
                 Node("n", "", std::move(labels)));
  };
  EXPECT_TRUE(helps("", R"("a":"1")"));
  EXPECT_FALSE(helps("", R"("b":"1")"));
  EXPECT_FALSE(helps(R"("nodeSelector":{"b":"1"})", R"("a":"1")"));
  EXPECT_TRUE(helps(R"("nodeSelector":{"b":"1"})", R"("a":"1","b":"1")"));
  EXPECT_TRUE(Helps(plugin, "", EventKind::kTargetPodChange, PodObject(""), PodObject("")));
}

}  // namespace
}  // namespace drakkar::scheduler
