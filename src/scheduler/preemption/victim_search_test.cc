#include "scheduler/preemption/victim_search.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"
#include "scheduler/testing/test_context.h"

namespace drakkar::scheduler {
namespace {

api::ObjectPtr Parse(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return std::make_shared<const api::Object>(*tree);
}

// Nodes with 4 CPUs. A pod fits where its CPUs are free.
class VictimSearchTest : public ::testing::Test {
 protected:
  struct Wanted {
    int cpu = 1;
    int priority = 0;
    std::string labels = R"({"app":"web"})";
    std::string started = "2026-01-01T00:00:00Z";
  };

  void AddNode(const std::string& name) {
    world_.AddNode(Parse(StrCat(R"({"metadata":{"name":")", name,
                                R"("},"status":{"allocatable":{"cpu":"4","memory":"8Gi",)",
                                R"("pods":"110"}}})")));
  }
  static PodInfoPtr Pod(const std::string& name, const std::string& node, const Wanted& wanted) {
    return MakePodInfo(Parse(StrCat(
        R"({"metadata":{"namespace":"ns","name":")", name, R"(","uid":")", name, R"(","labels":)",
        wanted.labels, R"(},"spec":{"nodeName":")", node, R"(","priority":)", wanted.priority,
        R"(,"containers":[{"resources":{"requests":{"cpu":")", wanted.cpu,
        R"("}}}]},"status":{"startTime":")", wanted.started, R"("}})")));
  }
  void Place(const std::string& name, const std::string& node, const Wanted& wanted) {
    world_.placements.Confirm(Pod(name, node, wanted));
  }
  // "node: victim victim", or nothing.
  std::string Find(const Wanted& wanted, std::vector<DisruptionBudget> budgets = {}) {
    const PodInfoPtr pod = Pod("wanted", "", wanted);
    VictimSearch search(world_.nodes, world_.placements, std::move(budgets));
    const auto plan = search.Find(*pod, world_.nodes.known(), 0, [&](NodeIndex node) {
      ++trials_;
      return world_.nodes.free_cpu()[node] >= wanted.cpu * 1000;
    });
    if (!plan) return {};
    std::vector<std::string> names;
    for (const PodInfoPtr& victim : plan->victims) names.emplace_back(victim->name());
    violations_ = plan->violations;
    return StrCat(world_.nodes.name(plan->node), ": ", Join(names, " "));
  }
  static DisruptionBudget Budget(std::string_view app, int allowed) {
    return DisruptionBudget::FromApi(*Parse(
        StrCat(R"({"metadata":{"namespace":"ns","name":"b"},"spec":{"selector":{"matchLabels":)",
               R"({"app":")", app, R"("}}},"status":{"disruptionsAllowed":)", allowed, "}}")));
  }

  TestContext world_;
  int trials_ = 0;
  std::size_t violations_ = 0;
};

TEST_F(VictimSearchTest, OnlyPodsOfLowerPriorityAreVictims) {
  AddNode("n");
  Place("same", "n", {.cpu = 3, .priority = 5});
  Place("low", "n", {.cpu = 1, .priority = 4});
  EXPECT_EQ(Find({.cpu = 1, .priority = 5}), "n: low");
  EXPECT_EQ(Find({.cpu = 2, .priority = 5}), "");
  EXPECT_EQ(Find({.cpu = 1, .priority = 4}), "");
  EXPECT_EQ(Find({.cpu = 2, .priority = 6}), "n: same");
}

TEST_F(VictimSearchTest, TheMostImportantPodsAreSpared) {
  AddNode("n");
  Place("old", "n", {.cpu = 1, .started = "2026-01-01T00:00:00Z"});
  Place("young", "n", {.cpu = 1, .started = "2026-01-02T00:00:00Z"});
  Place("more", "n", {.cpu = 1, .priority = 1, .started = "2026-01-03T00:00:00Z"});
  EXPECT_EQ(Find({.cpu = 2, .priority = 9}), "n: young");
  EXPECT_EQ(Find({.cpu = 3, .priority = 9}), "n: old young");
  EXPECT_EQ(Find({.cpu = 4, .priority = 9}), "n: more old young");
}

TEST_F(VictimSearchTest, NothingIsChangedByTrials) {
  AddNode("n");
  Place("a", "n", {.cpu = 2});
  Place("b", "n", {.cpu = 2});
  Find({.cpu = 1, .priority = 1});
  Find({.cpu = 5, .priority = 1});
  EXPECT_EQ(world_.nodes.free_cpu()[0], 0);
  EXPECT_EQ(world_.placements.PodsOn(0).size(), 2u);
}

TEST_F(VictimSearchTest, TheNodeWithTheLeastImportantVictimsIsTaken) {
  AddNode("n1");
  AddNode("n2");
  AddNode("n3");
  Place("a", "n1", {.cpu = 4, .priority = 3});
  Place("b", "n2", {.cpu = 2, .priority = 2});
  Place("c", "n2", {.cpu = 2, .priority = 2});
  Place("d", "n3", {.cpu = 4, .priority = 2});
  EXPECT_EQ(Find({.cpu = 4, .priority = 9}), "n3: d") << "fewer of the same priority";
  EXPECT_EQ(Find({.cpu = 2, .priority = 9}), "n2: c");
}

TEST_F(VictimSearchTest, AmongEqualNodesTheOneWithTheYoungestVictimIsTaken) {
  AddNode("n1");
  AddNode("n2");
  Place("old", "n1", {.cpu = 4, .started = "2026-01-01T00:00:00Z"});
  Place("young", "n2", {.cpu = 4, .started = "2026-01-02T00:00:00Z"});
  EXPECT_EQ(Find({.cpu = 4, .priority = 9}), "n2: young");
}

TEST_F(VictimSearchTest, PodsThatABudgetProtectsAreSparedIfOthersWillDo) {
  AddNode("n1");
  AddNode("n2");
  Place("web", "n1", {.cpu = 4});
  Place("db", "n2", {.cpu = 4, .priority = 5, .labels = R"({"app":"db"})"});
  EXPECT_EQ(Find({.cpu = 4, .priority = 9}), "n1: web");
  EXPECT_EQ(Find({.cpu = 4, .priority = 9}, {Budget("web", 0)}), "n2: db");
  EXPECT_EQ(violations_, 0u);
  EXPECT_EQ(Find({.cpu = 4, .priority = 9}, {Budget("web", 1)}), "n1: web");
  EXPECT_EQ(Find({.cpu = 4, .priority = 9}, {Budget("web", 0), Budget("db", 0)}), "n1: web");
  EXPECT_EQ(violations_, 1u) << "a budget is a preference";
}

TEST_F(VictimSearchTest, ABudgetAllowsAsManyVictimsAsItSays) {
  AddNode("n");
  Place("a", "n", {.cpu = 2});
  Place("b", "n", {.cpu = 2});
  EXPECT_EQ(Find({.cpu = 4, .priority = 9}, {Budget("web", 2)}), "n: a b");
  EXPECT_EQ(violations_, 0u);
  EXPECT_EQ(Find({.cpu = 4, .priority = 9}, {Budget("web", 1)}), "n: a b");
  EXPECT_EQ(violations_, 1u);
}

TEST_F(VictimSearchTest, ASelectorThatIsEmptyOrMissingProtectsNobody) {
  AddNode("n1");
  AddNode("n2");
  Place("a", "n1", {.cpu = 4});
  Place("b", "n2", {.cpu = 4, .priority = 1});
  const DisruptionBudget all = DisruptionBudget::FromApi(
      *Parse(R"({"metadata":{"namespace":"ns"},"spec":{"selector":{}}})"));
  const DisruptionBudget none =
      DisruptionBudget::FromApi(*Parse(R"({"metadata":{"namespace":"ns"},"spec":{}})"));
  EXPECT_EQ(Find({.cpu = 4, .priority = 9}, {all, none}), "n1: a");
  EXPECT_EQ(violations_, 0u);
}

TEST_F(VictimSearchTest, TheWorkIsBounded) {
  for (int i = 0; i < 400; ++i) {
    AddNode(StrCat("n", i));
    Place(StrCat("p", i), StrCat("n", i), {.cpu = 4});
  }
  EXPECT_NE(Find({.cpu = 4, .priority = 1}), "");
  EXPECT_EQ(trials_, 2 * 100) << "compares 100 nodes, with two trials each";
  trials_ = 0;
  EXPECT_EQ(Find({.cpu = 5, .priority = 1}), "");
  EXPECT_EQ(trials_, 400);
}

TEST_F(VictimSearchTest, ExpensiveTrialsEndTheSearchWithTheBestPlanSoFar) {
  constexpr int kNodes = 90;
  for (int i = 0; i < kNodes; ++i) {
    AddNode(StrCat("n", i));
    Place(StrCat("p", i), StrCat("n", i), {.cpu = 4, .priority = 1});
  }
  const PodInfoPtr pod = Pod("wanted", "", {.cpu = 4, .priority = 2});
  VictimSearch search(world_.nodes, world_.placements, {});
  int trials = 0;
  const auto plan = search.Find(*pod, world_.nodes.known(), 0, [&](NodeIndex node) {
    ++trials;
    WorkBudget::Charge(1'000'000);
    return world_.nodes.free_cpu()[node] >= 4'000;
  });
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->victims.size(), 1u);
  EXPECT_LE(trials, 22);
}

}  // namespace
}  // namespace drakkar::scheduler
