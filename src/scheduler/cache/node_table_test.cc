// Every column of the table, and what pods and nominations do to it.
#include "scheduler/cache/node_table.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"
#include "scheduler/cache/node_condition.h"
#include "scheduler/cache/placements.h"
#include "scheduler/cache/room_keepers.h"

namespace drakkar::scheduler {
namespace {

api::ObjectPtr Parse(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return std::make_shared<const api::Object>(*tree);
}

api::ObjectPtr Node(std::string name, std::string more = "", int factor = 1) {
  return Parse(StrCat(R"({"metadata":{"name":")", name, R"("},"status":{"allocatable":{"cpu":")",
                      4 * factor, R"(","memory":")", 100 * factor, R"(","ephemeral-storage":")",
                      1000 * factor, R"(","pods":")", 2 * factor, R"(","example.com/x":")",
                      8 * factor, R"("}})", more, "}"));
}

// Requests 1 cpu, 10 memory, 100 storage, 3 of example.com/x and host port 80.
PodInfoPtr Pod(std::string uid, std::string node = "", std::string metadata = "", int priority = 0,
               int port = 80) {
  return MakePodInfo(Parse(StrCat(
      R"({"metadata":{"namespace":"d","name":")", uid, R"(","uid":")", uid, "\"", metadata,
      R"(},"spec":{"priority":)", priority, R"(,"nodeName":")", node,
      R"(","containers":[{"resources":{"requests":{"cpu":"1","memory":"10",)",
      R"("ephemeral-storage":"100","example.com/x":"3"}},"ports":[{"hostPort":)", port, "}]}]}}")));
}

struct Free {
  std::int64_t cpu, memory, storage, pods, other, scored_cpu, scored_memory;
  std::size_t ports;
  bool operator==(const Free&) const = default;
};
Free FreeOf(const NodeTable& table, NodeIndex at) {
  return {table.free_cpu()[at],
          table.free_memory()[at],
          table.free_storage()[at],
          table.free_pods()[at],
          table.FreeOther(at, "example.com/x"),
          table.scored_cpu()[at],
          table.scored_memory()[at],
          table.ports(at).size()};
}

TEST(NodeTable, EveryColumnFollowsPodsAndTheNode) {
  NodeTable table;
  const NodeIndex n = table.SetNode(Node("n"));
  const NodeIndex other = table.SetNode(Node("other"));
  const Free empty{4000, 100, 1000, 2, 8, 0, 0, 0};
  EXPECT_EQ(FreeOf(table, n), empty);
  table.AddPod(n, *Pod("a"));
  EXPECT_EQ(FreeOf(table, n), (Free{3000, 90, 900, 1, 5, 1000, 10, 1}));
  EXPECT_FALSE(table.without_pod_slots().Contains(n));
  table.AddPod(n, *Pod("b", "", "", 0, 81));
  EXPECT_EQ(FreeOf(table, n), (Free{2000, 80, 800, 0, 2, 2000, 20, 2}));
  EXPECT_TRUE(table.without_pod_slots().Contains(n));
  EXPECT_EQ(FreeOf(table, other), empty);
  table.SetNode(Node("n", "", 2));
  EXPECT_EQ(FreeOf(table, n), (Free{6000, 180, 1800, 2, 10, 2000, 20, 2}));
  EXPECT_FALSE(table.without_pod_slots().Contains(n));
  for (const auto& [resource, amount] :
       std::vector<std::pair<std::string, std::int64_t>>{{"cpu", 8000},
                                                         {"memory", 200},
                                                         {"ephemeral-storage", 2000},
                                                         {"pods", 4},
                                                         {"example.com/x", 16},
                                                         {"example.com/y", 0}}) {
    EXPECT_EQ(table.AllocatableOf(n, resource), amount) << resource;
  }
  EXPECT_EQ(table.allocatable_cpu()[n], 8000);
  EXPECT_EQ(table.allocatable_memory()[n], 200);
  table.RemovePod(n, *Pod("a"));
  ASSERT_EQ(table.ports(n).size(), 1u);
  EXPECT_EQ(table.ports(n)[0].port, 81) << "the port of the pod that stays";
  table.RemovePod(n, *Pod("b", "", "", 0, 81));
  EXPECT_EQ(FreeOf(table, n), (Free{8000, 200, 2000, 4, 16, 0, 0, 0}));
}

TEST(NodeTable, EveryOtherResourceOfAPodCounts) {
  NodeTable table;
  const NodeIndex n = table.SetNode(Node("n"));
  const PodInfoPtr pod =
      MakePodInfo(Parse(R"({"metadata":{"name":"p"},"spec":{"containers":[{"resources":{"requests":{
      "example.com/w":"1","example.com/x":"2","example.com/y":"3"}}}]}})"));
  table.AddPod(n, *pod);
  EXPECT_EQ(table.FreeOther(n, "example.com/w"), -1);
  EXPECT_EQ(table.FreeOther(n, "example.com/x"), 6);
  EXPECT_EQ(table.FreeOther(n, "example.com/y"), -3);
  table.RemovePod(n, *pod);
  EXPECT_EQ(table.FreeOther(n, "example.com/w"), 0);
  EXPECT_EQ(table.FreeOther(n, "example.com/x"), 8);
  EXPECT_EQ(table.FreeOther(n, "example.com/y"), 0);
}

TEST(NodeTable, NothingOfARemovedNodeIsLeft) {
  NodeTable table;
  const NodeIndex n = table.SetNode(Node("n"));
  table.AddPod(n, *Pod("a"));
  table.AddPod(n, *Pod("b"));
  table.AddNominated(n, Pod("c"));
  table.RemoveNode("n");
  table.RemoveNode("never seen");
  EXPECT_FALSE(table.without_pod_slots().Contains(n));
  EXPECT_EQ(table.Find("n"), kNoNode);
  EXPECT_EQ(table.name(n), "");
  EXPECT_EQ(table.FindNominated(n), nullptr);
  EXPECT_FALSE(table.has_nominated());
  EXPECT_EQ(table.SetNode(Node("m")), n);
  EXPECT_EQ(FreeOf(table, n), (Free{4000, 100, 1000, 2, 8, 0, 0, 0}));
  EXPECT_EQ(table.name(n), "m");
  EXPECT_TRUE(table.KeepsRoomFrom(*Pod("x"), *Pod("c"))) << "c is no longer nominated";
}

TEST(NodeTable, NodesWithEqualTaintsFormAGroupAndEmptyGroupsAreReused) {
  const auto node = [](std::string name, std::string taints) {
    return Node(std::move(name), StrCat(R"(,"spec":{"taints":[)", taints, "]}"));
  };
  constexpr char kA[] = R"({"key":"a","effect":"NoSchedule"})";
  constexpr char kB[] = R"({"key":"b","effect":"NoSchedule"})";
  NodeTable table;
  const NodeIndex n1 = table.SetNode(node("n1", kA));
  const NodeIndex n2 = table.SetNode(node("n2", kA));
  const NodeIndex n3 = table.SetNode(node("n3", ""));
  EXPECT_EQ(table.taint_group(n1), 1u);
  EXPECT_EQ(table.taint_group(n2), 1u);
  EXPECT_EQ(table.taint_group(n3), 0u);
  table.SetNode(node("n1", kB));
  EXPECT_EQ(table.taint_group(n1), 2u);
  EXPECT_FALSE(table.taint_groups()[1].nodes.Contains(n1));
  EXPECT_TRUE(table.taint_groups()[2].nodes.Contains(n1));
  EXPECT_EQ(table.taint_groups()[1].node_count, 1u);
  table.SetNode(node("n2", ""));
  EXPECT_EQ(table.taint_groups()[1].node_count, 0u);
  EXPECT_EQ(table.taint_groups()[0].node_count, 2u);
  table.SetNode(node("n3", StrCat(kA, ",", kB)));
  EXPECT_EQ(table.taint_group(n3), 1u) << "the empty group is reused";
  EXPECT_EQ(table.taint_groups()[1].taints.size(), 2u);
  EXPECT_TRUE(table.taint_groups()[1].nodes.Contains(n3));
  EXPECT_EQ(table.taint_groups().size(), 3u);
  table.RemoveNode("n1");
  EXPECT_FALSE(table.taint_groups()[2].nodes.Contains(n1));
  EXPECT_EQ(table.taint_groups()[2].node_count, 0u);
}

TEST(NodeTable, VersionsChangeOnlyWithWhatTheyCount) {
  NodeTable table;
  const NodeIndex n = table.SetNode(Node("n"));
  table.SetNode(Node("other"));
  const auto versions = [&] { return std::pair(table.label_version(), table.declared_version()); };
  auto before = versions();
  table.SetNode(Node("n", "", 2));
  EXPECT_EQ(versions(), before);
  table.SetNode(Parse(R"({"metadata":{"name":"n","labels":{"a":"1"}}})"));
  EXPECT_EQ(versions(), std::pair(before.first + 1, before.second));
  EXPECT_EQ(table.label_versions()[n], table.label_version());
  before = versions();
  table.SetNode(Parse(R"({"metadata":{"name":"n","labels":{"a":"1"}},"status":{
      "declaredFeatures":["F"]}})"));
  EXPECT_EQ(versions(), std::pair(before.first, before.second + 1));
  EXPECT_EQ(table.declared_versions()[n], table.declared_version());
  before = versions();
  table.RemoveNode("n");
  EXPECT_EQ(versions(), std::pair(before.first + 1, before.second + 1));
}

TEST(NodeTable, NominationsOfEqualPriorityKeepRoomForTheOlderPod) {
  NodeTable table;
  const NodeIndex n = table.SetNode(Node("n"));
  const auto created = [](std::string uid, std::string second, int priority = 0) {
    return Pod(uid, "", StrCat(R"(,"creationTimestamp":"2026-01-01T00:00:)", second, "Z\""),
               priority);
  };
  const PodInfoPtr old = created("z-old", "01"), young = created("a-young", "02"),
                   twin = created("b-young", "02"), urgent = created("urgent", "03", 9);
  table.AddNominated(n, old);
  EXPECT_TRUE(table.KeepsRoomFrom(*old, *young)) << "young is not nominated";
  EXPECT_TRUE(table.KeepsRoomFrom(*young, *twin));
  for (const PodInfoPtr& pod : {young, twin, urgent}) table.AddNominated(n, pod);
  EXPECT_FALSE(table.KeepsRoomFrom(*old, *old));
  EXPECT_TRUE(table.KeepsRoomFrom(*old, *young));
  EXPECT_FALSE(table.KeepsRoomFrom(*young, *old));
  EXPECT_TRUE(table.KeepsRoomFrom(*young, *twin)) << "of the same second: by uid";
  EXPECT_FALSE(table.KeepsRoomFrom(*twin, *young));
  EXPECT_TRUE(table.KeepsRoomFrom(*urgent, *old));
  EXPECT_FALSE(table.KeepsRoomFrom(*old, *urgent));
  table.RemoveNominated(n, "z-old");
  ASSERT_NE(table.FindNominated(n), nullptr);
  EXPECT_EQ(table.FindNominated(n)->size(), 3u);
  EXPECT_TRUE(table.KeepsRoomFrom(*young, *old)) << "old is no longer nominated";
}

TEST(RoomKeepers, AreNamedUpToABound) {
  NodeTable table;
  const NodeIndex n = table.SetNode(Node("n"));
  const PodInfoPtr pod = Pod("pod");
  const auto text = [&] {
    RoomKeepers keepers;
    keepers.AddOf(table, n, *pod);
    keepers.AddOf(table, n, *pod);  // names are not repeated
    return keepers.ToText();
  };
  table.AddNominated(n, Pod("lower", "", "", -1));
  table.AddNominated(n, Pod("b"));
  EXPECT_EQ(text(), "room is kept for nominated pod d/b");
  table.AddNominated(n, Pod("a"));
  EXPECT_EQ(text(), "room is kept for nominated pods d/a, d/b");
  for (int i = 0; i < 20; ++i) table.AddNominated(n, Pod(StrCat("p", i)));
  EXPECT_TRUE(text().ends_with(" and others")) << text();
}

TEST(Placements, AConfirmedPodSaysWhatChanged) {
  NodeTable table;
  Placements placements(table);
  const NodeIndex n = placements.SetNode(Node("n"));
  placements.SetNode(Node("m"));
  Placements::Change change = placements.Confirm(Pod("a", "n"));
  EXPECT_TRUE(change.is_new);
  EXPECT_FALSE(change.relabelled || change.freed);
  const std::uint64_t version = placements.pods_version();
  change = placements.Confirm(Pod("a", "n"));
  EXPECT_FALSE(change.is_new || change.relabelled || change.freed);
  EXPECT_EQ(placements.pods_version(), version);
  change = placements.Confirm(Pod("a", "n", R"(,"labels":{"x":"1"})"));
  EXPECT_TRUE(change.relabelled);
  EXPECT_FALSE(change.is_new || change.freed);
  EXPECT_GT(placements.pods_version(), version);
  EXPECT_EQ(placements.pods_versions()[n], placements.pods_version());
  ASSERT_EQ(placements.PodsOn(n).size(), 1u);
  EXPECT_EQ(placements.PodsOn(n)[0]->labels().Entry("x").str(), "1");
  change = placements.Confirm(
      Pod("a", "n", R"(,"labels":{"x":"1"},"deletionTimestamp":"2026-01-01T00:00:00Z")"));
  EXPECT_TRUE(change.relabelled) << "its deletion began";
}

TEST(Placements, APodThatTakesLessOfAnythingFreesIt) {
  const auto pod = [](std::string requests, std::string ports) {
    return MakePodInfo(Parse(StrCat(
        R"({"metadata":{"name":"a","uid":"a"},"spec":{"nodeName":"n","containers":[{"resources":)",
        R"({"requests":{)", requests, R"(}},"ports":[)", ports, "]}]}}")));
  };
  constexpr char kFull[] = R"("cpu":"2","memory":"2","ephemeral-storage":"2","example.com/x":"2")";
  constexpr char kPort[] = R"({"hostPort":1})";
  struct Case {
    const char* requests;
    const char* ports;
    bool freed;
  };
  const Case cases[] = {
      {kFull, kPort, false},
      {R"("cpu":"1","memory":"2","ephemeral-storage":"2","example.com/x":"2")", kPort, true},
      {R"("cpu":"2","memory":"1","ephemeral-storage":"2","example.com/x":"2")", kPort, true},
      {R"("cpu":"2","memory":"2","ephemeral-storage":"1","example.com/x":"2")", kPort, true},
      {R"("cpu":"2","memory":"2","ephemeral-storage":"2","example.com/x":"1")", kPort, true},
      {R"("cpu":"9","memory":"1","ephemeral-storage":"2","example.com/x":"2")", kPort, true},
      {R"("cpu":"9","memory":"9","ephemeral-storage":"9","example.com/x":"9")", kPort, false},
      {kFull, "", true},
      {kFull, R"({"hostPort":1},{"hostPort":2})", false},
  };
  for (const Case& c : cases) {
    NodeTable table;
    Placements placements(table);
    placements.SetNode(Node("n"));
    placements.Confirm(pod(kFull, kPort));
    EXPECT_EQ(placements.Confirm(pod(c.requests, c.ports)).freed, c.freed)
        << c.requests << " " << c.ports;
  }
}

TEST(Placements, APodBoundElsewhereThanAssumedFreesTheAssumedNode) {
  NodeTable table;
  Placements placements(table);
  const NodeIndex n = placements.SetNode(Node("n"));
  const NodeIndex m = placements.SetNode(Node("m"));
  placements.Assume(Pod("a"), "n");
  placements.Assume(Pod("b"), "n");
  EXPECT_EQ(placements.assumed_count(), 2u);
  EXPECT_EQ(placements.size(), 2u);
  const Placements::Change change = placements.Confirm(Pod("a", "m"));
  EXPECT_TRUE(change.is_new);
  EXPECT_TRUE(change.freed);
  EXPECT_EQ(placements.assumed_count(), 1u);
  EXPECT_EQ(table.free_cpu()[n], 3000);
  EXPECT_EQ(table.free_cpu()[m], 3000);
  EXPECT_EQ(*placements.FindNodeOf("a"), "m");
  EXPECT_EQ(placements.PodsOn(n).size(), 1u);
  EXPECT_EQ(placements.PodsOn(m).size(), 1u);
  placements.Forget("a");
  EXPECT_NE(placements.FindNodeOf("a"), nullptr) << "it is confirmed";
  placements.Forget("b");
  EXPECT_EQ(placements.FindNodeOf("b"), nullptr);
  EXPECT_EQ(placements.assumed_count(), 0u);
  EXPECT_EQ(table.free_cpu()[n], 4000);
  EXPECT_EQ(placements.PodsOn(n).size(), 0u);
  const std::uint64_t version = placements.pods_version();
  placements.Remove("a");
  placements.Remove("never seen");
  EXPECT_EQ(placements.pods_versions()[m], version + 1);
}

TEST(Placements, PodsOfAnUnknownNodeCountOnceItIsKnown) {
  NodeTable table;
  Placements placements(table);
  placements.Confirm(Pod("a", "n"));
  placements.Confirm(Pod("b", "n"));
  placements.Confirm(Pod("c", "n"));
  placements.Remove("b");
  const std::uint64_t version = placements.pods_version();
  const NodeIndex n = placements.SetNode(Node("n"));
  EXPECT_EQ(table.free_cpu()[n], 2000);
  EXPECT_EQ(placements.PodsOn(n).size(), 2u);
  EXPECT_GT(placements.pods_version(), version);
  EXPECT_EQ(placements.pods_versions()[n], placements.pods_version());
  placements.RemoveNode("n");
  EXPECT_EQ(placements.SetNode(Node("other")), n) << "the index is reused";
  EXPECT_EQ(placements.PodsOn(n).size(), 0u);
  EXPECT_EQ(table.free_cpu()[n], 4000);
  const NodeIndex again = placements.SetNode(Node("n"));
  EXPECT_EQ(placements.PodsOn(again).size(), 2u);
  placements.SetNode(Node("n"));
  EXPECT_EQ(table.free_cpu()[again], 2000) << "not counted twice";
}

TEST(Placements, ANominationFollowsItsNodeAndMovesWithThePod) {
  NodeTable table;
  Placements placements(table);
  EXPECT_FALSE(placements.Nominate(Pod("a"), "n")) << "it was nominated nowhere";
  EXPECT_EQ(placements.NominatedNode("a"), "n");
  EXPECT_EQ(placements.NominatedNode("b"), "");
  const NodeIndex n = placements.SetNode(Node("n"));
  const NodeIndex m = placements.SetNode(Node("m"));
  EXPECT_NE(table.FindNominated(n), nullptr) << "the node came later";
  EXPECT_EQ(table.FindNominated(m), nullptr);
  EXPECT_FALSE(placements.Nominate(Pod("a"), "n")) << "the same node";
  ASSERT_NE(table.FindNominated(n), nullptr);
  EXPECT_EQ(table.FindNominated(n)->size(), 1u);
  EXPECT_TRUE(placements.Nominate(Pod("a"), "m"));
  EXPECT_EQ(table.FindNominated(n), nullptr);
  EXPECT_NE(table.FindNominated(m), nullptr);
  EXPECT_TRUE(placements.Denominate("a"));
  EXPECT_FALSE(placements.Denominate("a"));
  EXPECT_EQ(table.FindNominated(m), nullptr);
}

TEST(NodeMatches, RememberNodesPerConditionAndFollowLabels) {
  NodeTable table;
  NodeMatches matches(table);
  const NodeIndex n = table.SetNode(Parse(R"({"metadata":{"name":"n","labels":{"a":"1"}}})"));
  const auto contains = [&](std::string spec) {
    const api::ObjectPtr object = Parse(spec);
    const NodeSet* found = matches.FindFor(object->root());
    EXPECT_NE(found, nullptr) << spec;
    return found != nullptr && found->Contains(n);
  };
  EXPECT_EQ(matches.FindFor(Parse("{}")->root()), nullptr);
  EXPECT_EQ(matches.FindFor(Parse(R"({"nodeSelector":{}})")->root()), nullptr);
  constexpr char kAffinity[] =
      R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)"
      R"({"nodeSelectorTerms":[{"matchExpressions":[{"key":"b","operator":"Exists"}]}]}}})";
  EXPECT_TRUE(contains(R"({"nodeSelector":{"a":"1"}})"));
  EXPECT_FALSE(contains(StrCat("{", kAffinity, "}")));
  EXPECT_FALSE(contains(StrCat(R"({"nodeSelector":{"a":"1"},)", kAffinity, "}"))) << "both";
  EXPECT_TRUE(contains(R"({"nodeSelector":{"a":"1"}})"));
  table.SetNode(Parse(R"({"metadata":{"name":"n","labels":{"b":"1"}}})"));
  EXPECT_FALSE(contains(R"({"nodeSelector":{"a":"1"}})"));
  EXPECT_TRUE(contains(StrCat("{", kAffinity, "}")));
  for (std::size_t i = 0; i < NodeMatches::kMaxRemembered + 1; ++i) {
    EXPECT_FALSE(contains(StrCat(R"({"nodeSelector":{"x":")", i, R"("}})")));
  }
  EXPECT_TRUE(contains(StrCat("{", kAffinity, "}"))) << "computed again after it was forgotten";
}

}  // namespace
}  // namespace drakkar::scheduler
