// The order and the rules in which the framework runs plugins, with plugins that only record.
#include "scheduler/framework/framework.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"
#include "scheduler/testing/test_context.h"

namespace drakkar::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

api::ObjectPtr Parse(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return std::make_shared<const api::Object>(*tree);
}

// Takes part in every point, records each call, and answers as the test says.
class Recorder final : public Plugin {
 public:
  explicit Recorder(std::vector<std::string>& calls) : calls_(calls) {}

  Code refusal() const override { return refusal_code; }
  EventMask events() const override { return event_mask; }
  Status PreEnqueue(const PodInfo&) override { return Status::Success(); }
  Status PreFilter(Cycle&) override {
    Record("PreFilter");
    return pre_filter;
  }
  Status Filter(Cycle&, NodeSet& nodes) override {
    Record("Filter");
    for (const NodeIndex node : rejects) nodes.Remove(node);
    return filter;
  }
  void Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) override {
    Record("Explain");
    if (explains) Plugin::Explain(cycle, rejected, diagnosis);
  }
  Status PostFilter(Cycle&) override {
    Record("PostFilter");
    return post_filter;
  }
  void Prefer(Cycle&, NodeSet& nodes) override {
    Record("Prefer");
    for (const NodeIndex node : prefer_filter) nodes.Remove(node);
    if (prefers == kNoNode || !nodes.Contains(prefers)) return;
    nodes.Clear();
    nodes.Add(prefers);
  }
  bool Score(Cycle&, std::span<const NodeIndex> nodes, std::span<std::int64_t> scores) override {
    Record("Score");
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      scores[i] = nodes[i] == best ? 100 : 0;
    }
    return scores_differ;
  }
  Status Reserve(Cycle&) override {
    Record("Reserve");
    return reserve;
  }
  void Unreserve(Cycle&) override { Record("Unreserve"); }
  void PreBind(CyclePtr, StatusCallback done) override {
    Record("PreBind");
    done(pre_bind);
  }
  void Bind(CyclePtr, StatusCallback done) override {
    Record("Bind");
    done(bind);
  }
  void Cancel(Cycle&) override { Record("Cancel"); }
  void OnNodeLost(Cycle&, const std::string& why) override { Record(StrCat("Lost:", why)); }

  Code refusal_code = Code::kUnschedulable;
  EventMask event_mask = 0;
  Status pre_filter, filter, post_filter, reserve, pre_bind, bind;
  std::vector<NodeIndex> rejects;
  bool explains = true;
  NodeIndex prefers = kNoNode;
  std::vector<NodeIndex> prefer_filter;  // nodes that it does not prefer
  NodeIndex best = kNoNode;
  bool scores_differ = true;

 private:
  void Record(std::string_view what) { calls_.push_back(StrCat(name(), ".", what)); }
  std::vector<std::string>& calls_;
};

class FrameworkTest : public ::testing::Test {
 protected:
  FrameworkTest() {
    for (const char* name : {"n0", "n1", "n2"}) AddNode(name);
  }

  NodeIndex AddNode(std::string name) {
    return world_.AddNode(Parse(StrCat(R"({"metadata":{"name":")", name, R"("}})")));
  }
  Recorder& Add(std::string_view name, std::int64_t weight = 1, std::map<Points, int> places = {}) {
    auto plugin = std::make_unique<Recorder>(calls_);
    plugin->Register({.name = name,
                      .id = static_cast<PluginId>(plugins_.size()),
                      .weight = weight,
                      .points = PointsOf<Recorder>(),
                      .places = std::move(places)});
    Recorder& added = *plugin;
    plugins_.push_back(std::move(plugin));
    return added;
  }
  Framework& framework() {
    if (!framework_) framework_.emplace(world_.loop, world_.nodes, plugins_, &world_.metrics);
    return *framework_;
  }
  CyclePtr NewCycle() {
    auto cycle = std::make_shared<Cycle>();
    cycle->pod = MakePodInfo(Parse(R"({"metadata":{"name":"p","uid":"p"}})"));
    return cycle;
  }
  Decision Decide(NodeIndex preferred = kNoNode) {
    calls_.clear();
    cycle_ = NewCycle();
    return framework().Decide(*cycle_, preferred);
  }

  TestContext world_;
  std::vector<std::string> calls_;
  std::vector<std::unique_ptr<Plugin>> plugins_;
  std::optional<Framework> framework_;
  CyclePtr cycle_;
};

TEST_F(FrameworkTest, RunsEachPointForAllPluginsInOrder) {
  Add("a");
  Add("b");
  EXPECT_TRUE(Decide().status.ok());
  EXPECT_THAT(calls_, ElementsAre("a.PreFilter", "b.PreFilter", "a.Filter", "b.Filter", "a.Prefer",
                                  "b.Prefer", "a.Score", "b.Score"));
}

TEST_F(FrameworkTest, AProfileMayChangeTheOrderOfOnePoint) {
  Add("a", 1, {{static_cast<Points>(Point::kFilter), 2}});
  Add("b", 1, {{static_cast<Points>(Point::kFilter), 1}});
  EXPECT_TRUE(Decide().status.ok());
  EXPECT_THAT(calls_, ElementsAre("a.PreFilter", "b.PreFilter", "b.Filter", "a.Filter", "a.Prefer",
                                  "b.Prefer", "a.Score", "b.Score"));
}

TEST_F(FrameworkTest, APluginThatSkipsThePodIsAskedNothingElse) {
  Add("a").pre_filter = Status::Skip();
  Add("b");
  EXPECT_TRUE(Decide().status.ok());
  EXPECT_THAT(calls_, ElementsAre("a.PreFilter", "b.PreFilter", "b.Filter", "b.Prefer", "b.Score"));
  calls_.clear();
  EXPECT_TRUE(framework().Reserve(*cycle_).ok());
  framework().Unreserve(*cycle_);
  framework().PreBind(cycle_, [](Status status) { EXPECT_TRUE(status.ok()); });
  framework().Cancel(*cycle_);
  framework().OnNodeLost(*cycle_, "why");
  EXPECT_THAT(calls_,
              ElementsAre("b.Reserve", "b.Unreserve", "b.PreBind", "b.Cancel", "b.Lost:why"));
}

TEST_F(FrameworkTest, APodRejectedByPreFilterGetsThatReasonAloneAndNothingElseRuns) {
  Add("a");
  Add("b").pre_filter = Status::Unresolvable("no claim");
  Add("c");
  const Decision decision = Decide();
  EXPECT_EQ(decision.status.code, Code::kUnresolvable);
  EXPECT_EQ(decision.diagnosis.Message(3), "0/3 nodes are available: no claim.");
  EXPECT_EQ(decision.diagnosis.rejected_by, OnlyPlugin(1));
  EXPECT_THAT(calls_, ElementsAre("a.PreFilter", "b.PreFilter"));
}

TEST_F(FrameworkTest, EachNodeIsExplainedByTheFirstPluginThatRejectedIt) {
  Add("a").rejects = {0};
  Add("b");
  Add("c").rejects = {0, 1, 2};
  Add("d");
  const Decision decision = Decide();
  EXPECT_EQ(decision.status.code, Code::kUnschedulable);
  EXPECT_EQ(decision.diagnosis.Message(3), "0/3 nodes are available: 1 a, 2 c.");
  EXPECT_EQ(decision.diagnosis.rejected_by, OnlyPlugin(0) | OnlyPlugin(2));
  EXPECT_THAT(calls_, Not(::testing::Contains("d.Filter")));
  EXPECT_THAT(calls_, Not(::testing::Contains("b.Explain")));
}

TEST_F(FrameworkTest, OneResolvableRefusalMakesThePodResolvable) {
  Recorder& a = Add("a");
  Recorder& b = Add("b");
  a.rejects = {0};
  b.rejects = {1, 2};
  a.refusal_code = b.refusal_code = Code::kUnresolvable;
  EXPECT_EQ(Decide().status.code, Code::kUnresolvable);
  a.refusal_code = Code::kUnschedulable;
  EXPECT_EQ(Decide().status.code, Code::kUnschedulable);
}

TEST_F(FrameworkTest, WithoutNodesAnyFilterMayRejectTheFirstOne) {
  for (const char* name : {"n0", "n1", "n2"}) world_.placements.RemoveNode(name);
  Add("a").refusal_code = Code::kUnresolvable;
  Add("b");
  const Decision decision = Decide();
  EXPECT_EQ(decision.status.code, Code::kUnschedulable);
  EXPECT_EQ(decision.diagnosis.rejected_by, OnlyPlugin(0) | OnlyPlugin(1));
  EXPECT_EQ(decision.diagnosis.Message(0), "no nodes available to schedule pods");
}

TEST_F(FrameworkTest, AnErrorInAFilterEndsTheAttempt) {
  Add("a").filter = Status::Error("broken");
  Add("b");
  const Decision decision = Decide();
  EXPECT_EQ(decision.status.code, Code::kError);
  EXPECT_EQ(decision.status.Message(), "broken");
  EXPECT_THAT(calls_, ElementsAre("a.PreFilter", "b.PreFilter", "a.Filter"));
}

TEST_F(FrameworkTest, PostFilterRunsUpToTheFirstPluginThatActsWithoutThoseThatSkip) {
  Recorder& a = Add("a");
  a.pre_filter = Status::Skip();
  a.post_filter = Status::Unschedulable("not asked");
  Recorder& b = Add("b");
  b.rejects = {0, 1, 2};
  Add("c").post_filter = Status::Unschedulable("devices were freed");
  Add("d");
  const Decision decision = Decide();
  EXPECT_EQ(decision.diagnosis.Message(3), "0/3 nodes are available: 3 b. devices were freed");
  EXPECT_THAT(calls_, ElementsAre("a.PreFilter", "b.PreFilter", "c.PreFilter", "d.PreFilter",
                                  "b.Filter", "b.Explain", "b.PostFilter", "c.PostFilter"));
}

TEST_F(FrameworkTest, TheNominatedNodeIsTakenWithoutScoresIfItFits) {
  Recorder& a = Add("a");
  a.best = 0;
  const Decision nominated = Decide(/*preferred=*/1);
  EXPECT_EQ(nominated.node, 1u);
  EXPECT_EQ(nominated.feasible_nodes, 1u);
  EXPECT_THAT(calls_, Not(::testing::Contains("a.Score")));
  a.rejects = {1};
  const Decision elsewhere = Decide(/*preferred=*/1);
  EXPECT_EQ(elsewhere.node, 0u);
  EXPECT_EQ(elsewhere.feasible_nodes, 2u);
}

TEST_F(FrameworkTest, APreferenceOutweighsNominationAndScores) {
  Recorder& a = Add("a");
  a.prefers = 2;
  a.best = 0;
  EXPECT_EQ(Decide(/*preferred=*/1).node, 2u);
}

TEST_F(FrameworkTest, ScoresAreWeightedAndAddedUp) {
  Recorder& a = Add("a", 3);
  Recorder& b = Add("b", 2);
  Recorder& c = Add("c", 2);
  a.best = 0;
  b.best = c.best = 1;
  EXPECT_EQ(Decide().node, 1u) << "3 against 2 + 2";
  c.scores_differ = false;
  EXPECT_EQ(Decide().node, 0u) << "equal scores do not count";
  c.scores_differ = true;
  c.pre_filter = Status::Skip();
  EXPECT_EQ(Decide().node, 0u) << "nor those of a plugin that skips the pod";
}

TEST_F(FrameworkTest, EqualNodesTakeTurns) {
  Add("a").scores_differ = false;
  std::vector<NodeIndex> chosen;
  for (int i = 0; i < 4; ++i) chosen.push_back(Decide().node);
  // Every attempt looks at all three nodes, so it begins after the last one, at the first.
  EXPECT_THAT(chosen, ElementsAre(0u, 0u, 0u, 0u));
  for (int i = 3; i < 120; ++i) AddNode(StrCat("n", i));
  chosen.clear();
  for (int i = 0; i < 4; ++i) {
    const Decision decision = Decide();
    EXPECT_EQ(decision.feasible_nodes, 100u) << "of 120";
    chosen.push_back(decision.node);
  }
  EXPECT_THAT(chosen, ElementsAre(3u, 103u, 83u, 63u));
}

TEST_F(FrameworkTest, AFailedReservationIsUndoneInReverseOrder) {
  Add("a");
  Add("b").reserve = Status::Error("taken");
  Add("c");
  const CyclePtr cycle = NewCycle();
  const Status status = framework().Reserve(*cycle);
  EXPECT_EQ(status.Message(), "taken");
  EXPECT_THAT(calls_,
              ElementsAre("a.Reserve", "b.Reserve", "c.Unreserve", "b.Unreserve", "a.Unreserve"));
}

TEST_F(FrameworkTest, PreBindRunsOneAfterTheOtherUpToTheFirstFailure) {
  Add("a").pre_bind = Status::Skip();
  Recorder& b = Add("b");
  Add("c");
  const auto run = [&] {
    calls_.clear();
    std::vector<std::string> answers;
    framework().PreBind(NewCycle(), [&](Status status) {
      answers.push_back(status.ok() ? "ok" : status.Message());
    });
    EXPECT_EQ(answers.size(), 1u);
    return answers.empty() ? "" : answers[0];
  };
  EXPECT_EQ(run(), "ok");
  EXPECT_THAT(calls_, ElementsAre("a.PreBind", "b.PreBind", "c.PreBind"));
  b.pre_bind = Status::Error("failed");
  EXPECT_EQ(run(), "failed");
  EXPECT_THAT(calls_, ElementsAre("a.PreBind", "b.PreBind"));
}

TEST_F(FrameworkTest, OnlyTheFirstBindPluginBinds) {
  Add("a");
  Add("b");
  bool bound = false;
  framework().Bind(NewCycle(), [&](Status status) { bound = status.ok(); });
  EXPECT_TRUE(bound);
  EXPECT_THAT(calls_, ElementsAre("a.Bind"));
}

TEST_F(FrameworkTest, CancellationAndALostNodeReachEveryPreBindPlugin) {
  Add("a");
  Add("b");
  const CyclePtr cycle = NewCycle();
  framework().Cancel(*cycle);
  framework().OnNodeLost(*cycle, "cordoned");
  EXPECT_THAT(calls_, ElementsAre("a.Cancel", "b.Cancel", "a.Lost:cordoned", "b.Lost:cordoned"));
}

TEST_F(FrameworkTest, ATaintedNodeIsCheckedByThePluginsThatListenForTaints) {
  Recorder& a = Add("a");  // does not listen
  Recorder& b = Add("b");
  Recorder& c = Add("c");
  a.rejects = {1};
  b.event_mask = c.event_mask = MaskOf(EventKind::kNodeTaint);
  const CyclePtr cycle = NewCycle();
  EXPECT_EQ(framework().RefusalByTaints(*cycle, 1), "");
  EXPECT_THAT(calls_, ElementsAre("b.Filter", "c.Filter"));
  b.rejects = {0, 2};
  EXPECT_EQ(framework().RefusalByTaints(*cycle, 1), "") << "another node";
  c.rejects = {1};
  c.explains = false;
  EXPECT_EQ(framework().RefusalByTaints(*cycle, 1), "c") << "without a reason, the plugin's name";
  b.rejects = {1};
  b.filter = Status::Error("broken");
  EXPECT_EQ(framework().RefusalByTaints(*cycle, 1), "c") << "an error is no refusal";
  b.filter = Status::Success();
  EXPECT_EQ(framework().RefusalByTaints(*cycle, 1), "b");
  cycle->skipped = OnlyPlugin(1) | OnlyPlugin(2);
  EXPECT_EQ(framework().RefusalByTaints(*cycle, 1), "");
}

TEST_F(FrameworkTest, ALookShowsEveryPluginThatRejectsANode) {
  Recorder& a = Add("a");
  Recorder& b = Add("b");
  Add("c").pre_filter = Status::Skip();
  a.rejects = {0, 1};
  b.rejects = {1};
  const CyclePtr cycle = NewCycle();
  const Framework::Survey survey = framework().Look(*cycle);
  EXPECT_TRUE(survey.status.ok());
  std::vector<std::string> seen;
  for (const auto& [node, refusals] : survey.refusals) {
    for (const Framework::Refusal& refusal : refusals) {
      seen.push_back(StrCat(node, ":", refusal.plugin->name(), ":", Join(refusal.reasons, "+")));
    }
  }
  EXPECT_THAT(seen, ElementsAre("0:a:a", "1:a:a", "1:b:b"));
  EXPECT_THAT(calls_, Not(::testing::Contains("c.Filter")));
}

TEST_F(FrameworkTest, ALookShowsTheNodesThatEveryPluginPrefers) {
  Add("a").prefer_filter = {0};
  Add("b").prefer_filter = {1};
  Add("c");
  const CyclePtr cycle = NewCycle();
  const Framework::Survey survey = framework().Look(*cycle);
  EXPECT_FALSE(survey.preferred.Contains(0));
  EXPECT_FALSE(survey.preferred.Contains(1));
  EXPECT_TRUE(survey.preferred.Contains(2));
}

TEST_F(FrameworkTest, ALookAsksForNoPreferenceIfNoNodeFits) {
  Add("a").rejects = {0, 1, 2};
  Add("b");
  (void)framework().Look(*NewCycle());
  EXPECT_THAT(calls_, Not(::testing::Contains("b.Prefer")));
}

TEST_F(FrameworkTest, ALookEndsWithTheRefusalOfThePodOrAnError) {
  Recorder& a = Add("a");
  a.pre_filter = Status::Unresolvable("no claim");
  Framework::Survey survey = framework().Look(*NewCycle());
  EXPECT_EQ(survey.status.Message(), "no claim");
  EXPECT_THAT(calls_, ElementsAre("a.PreFilter"));
  a.pre_filter = Status::Success();
  a.filter = Status::Error("broken");
  a.rejects = {0};
  survey = framework().Look(*NewCycle());
  EXPECT_EQ(survey.status.Message(), "broken");
  EXPECT_THAT(survey.refusals, IsEmpty());
}

TEST_F(FrameworkTest, EveryTenthAttemptIsMeasuredWithItsOutcome) {
  Recorder& a = Add("a");
  Add("b");
  const auto point = [](const char* name, const char* status, int count) {
    return StrCat("scheduler_framework_extension_point_duration_seconds_count{extension_point=\"",
                  name, "\",profile=\"test\",status=\"", status, "\"} ", count);
  };
  const auto plugin = [](const char* name, const char* at, const char* status, int count) {
    return StrCat("scheduler_plugin_execution_duration_seconds_count{extension_point=\"", at,
                  "\",plugin=\"", name, "\",status=\"", status, "\"} ", count);
  };
  const auto attempt = [&](Status reserve, Status pre_bind, Status bind) {
    a.reserve = std::move(reserve);
    a.pre_bind = std::move(pre_bind);
    a.bind = std::move(bind);
    (void)framework().Reserve(*cycle_);
    framework().PreBind(cycle_, [](Status) {});
    framework().Bind(cycle_, [](Status) {});
  };
  for (int i = 1; i < 10; ++i) {
    (void)Decide();
    attempt({}, {}, {});
  }
  EXPECT_THAT(world_.registry.Text(),
              Not(HasSubstr("scheduler_framework_extension_point_duration_seconds_count")));
  (void)Decide();
  attempt({}, {}, {});
  std::string text = world_.registry.Text();
  for (const char* name : {"PreFilter", "Filter", "Score", "Reserve", "PreBind", "Bind"}) {
    EXPECT_THAT(text, HasSubstr(point(name, "Success", 1)));
  }
  for (const char* name : {"a", "b"}) {
    for (const char* at : {"PreFilter", "Filter", "Score"}) {
      EXPECT_THAT(text, HasSubstr(plugin(name, at, "Success", 1)));
    }
  }
  a.rejects = {0, 1, 2};
  for (int i = 0; i < 10; ++i) (void)Decide();
  attempt(Status::Error("x"), Status::Error("x"), Status::Error("x"));
  a.pre_filter = Status::Unresolvable("x");
  for (int i = 0; i < 10; ++i) (void)Decide();
  a.pre_filter = Status::Skip();
  for (int i = 0; i < 10; ++i) (void)Decide();
  text = world_.registry.Text();
  EXPECT_THAT(text, HasSubstr(point("PreFilter", "Success", 3)));
  EXPECT_THAT(text, HasSubstr(point("PreFilter", "UnschedulableAndUnresolvable", 1)));
  EXPECT_THAT(text, HasSubstr(point("Filter", "Unschedulable", 1)));
  EXPECT_THAT(text, HasSubstr(point("PostFilter", "Unschedulable", 1)));
  for (const char* name : {"Reserve", "PreBind", "Bind"}) {
    EXPECT_THAT(text, HasSubstr(point(name, "Error", 1)));
  }
  EXPECT_THAT(text, HasSubstr(plugin("a", "PreFilter", "Skip", 1)));
  EXPECT_THAT(text, HasSubstr(plugin("a", "PostFilter", "Success", 1)));
}

}  // namespace
}  // namespace drakkar::scheduler
