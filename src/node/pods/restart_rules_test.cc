// Restart rules of containers (KEP-5307) and the restart of all containers (KEP-5532).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"
#include "node/pods/pod_facts.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

std::string Rule(const char* action, const char* op, const char* values) {
  return StrCat(R"({"action":")", action, R"(","exitCodes":{"operator":")", op, R"(","values":[)",
                values, "]}}");
}

TEST(RestartRules, TheFirstThatMatchesDecidesThenTheContainerThenThePod) {
  const RestartSettings never{RestartPolicy::kNever, true, true};
  const RestartSettings always{RestartPolicy::kAlways, true, true};
  const RestartSettings no_rules{RestartPolicy::kNever, false, false};
  const RestartSettings no_restart_all{RestartPolicy::kNever, true, false};
  struct Case {
    std::string container;
    int exit_code;
    RestartSettings settings;
    bool restarts;
    bool restarts_all;
  };
  const std::string in_42 = StrCat(R"("restartPolicy":"Never","restartPolicyRules":[)",
                                   Rule("Restart", "In", "42,43"), "]");
  const std::string all_in_42 = StrCat(R"("restartPolicy":"Never","restartPolicyRules":[)",
                                       Rule("RestartAllContainers", "In", "42"), "]");
  const std::string ordered =
      StrCat(R"("restartPolicy":"Never","restartPolicyRules":[)", Rule("Restart", "In", "42"), ",",
             Rule("RestartAllContainers", "NotIn", "0"), "]");
  const Case cases[] = {
      {"", 1, never, false, false},
      {"", 0, always, true, false},
      {R"("restartPolicy":"Never")", 1, always, false, false},
      {R"("restartPolicy":"Always")", 0, never, true, false},
      {R"("restartPolicy":"OnFailure")", 1, never, true, false},
      {R"("restartPolicy":"OnFailure")", 0, always, false, false},
      {R"("restartPolicy":"Always")", 0, no_rules, false, false},
      {in_42, 42, never, true, false},
      {in_42, 43, never, true, false},
      {in_42, 44, always, false, false},
      {in_42, 42, no_rules, false, false},
      {all_in_42, 42, never, false, true},
      {all_in_42, 1, never, false, false},
      {all_in_42, 42, no_restart_all, false, false},
      {ordered, 42, never, true, false},
      {ordered, 7, never, false, true},
      {ordered, 0, never, false, false},
      {ordered, 7, no_restart_all, false, false},
  };
  for (const Case& c : cases) {
    const api::TreePtr spec = api::ParseJson(StrCat("{", c.container, "}")).value();
    ContainerFacts facts;
    facts.spec = spec->root();
    facts.current.emplace();
    facts.current->state = ContainerState::kExited;
    facts.current->exit_code = c.exit_code;
    EXPECT_EQ(ShouldRestart(facts, c.settings), c.restarts) << c.container << c.exit_code;
    EXPECT_EQ(RestartsAll(facts, c.settings), c.restarts_all) << c.container << c.exit_code;
  }
}

TEST(RestartRules, AnInitContainerCanHaveItsOwnPolicy) {
  for (const auto& [policy, restarts] :
       std::vector<std::pair<const char*, bool>>{{"Never", false}, {"OnFailure", true}}) {
    const api::TreePtr spec =
        api::ParseJson(StrCat(R"({"restartPolicy":")", policy, R"("})")).value();
    ContainerFacts facts;
    facts.init = true;
    facts.spec = spec->root();
    facts.current.emplace();
    facts.current->state = ContainerState::kExited;
    facts.current->exit_code = 1;
    EXPECT_EQ(ShouldRestart(facts, {RestartPolicy::kAlways, true, true}), restarts);
    facts.current->exit_code = 0;
    EXPECT_FALSE(ShouldRestart(facts, {RestartPolicy::kAlways, true, true}))
        << "it has done its part";
  }
}

// A pod whose container `watcher` exits with 42 after 5 s in its first attempt.
struct RestartingPod : NodeHarness {
  explicit RestartingPod(int attempts_that_end = 1) {
    machine.program_of = [attempts_that_end](const ContainerConfig& config) {
      if (config.name == "setup" || config.name == "once")
        return HollowProgram{.runs_for = seconds(1)};
      if (config.name == "watcher" &&
          config.attempt < static_cast<std::uint32_t>(attempts_that_end)) {
        return HollowProgram{.runs_for = seconds(5), .exit_code = 42};
      }
      return HollowProgram{.ignores_stop_signal = config.name == "stubborn"};
    };
    StartAgent();
  }
  void Create() {
    CreatePod("p", StrCat(R"("restartPolicy":"Never","terminationGracePeriodSeconds":600,
      "initContainers":[{"name":"setup","image":"busybox:1"},
        {"name":"side","image":"busybox:1","restartPolicy":"Always"}],
      "containers":[{"name":"once","image":"busybox:1"},
        {"name":"stubborn","image":"busybox:1"},
        {"name":"watcher","image":"busybox:1","restartPolicy":"Never","restartPolicyRules":[)",
                          Rule("RestartAllContainers", "In", "42"), "]}]"));
  }
  std::vector<int> Attempts() {
    std::vector<int> attempts;
    for (const char* name : {"setup", "side", "once", "stubborn", "watcher"}) {
      attempts.push_back(static_cast<int>(Containers("p", name).back()->status.attempt));
    }
    return attempts;
  }
  std::string Condition() {
    for (api::Value each : (*Pod("p"))["status"]["conditions"].elements()) {
      if (each["type"].str() == "AllContainersRestarting") return std::string(each["status"].str());
    }
    return "(none)";
  }
};

TEST(RestartAllContainers, StartsEverythingOverInTheSameSandbox) {
  RestartingPod node;
  node.Create();
  node.Advance(seconds(2));
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(node.Condition(), "False");
  const std::string sandbox = node.machine.sandboxes.begin()->first;
  std::vector<std::string> conditions, phases;
  for (int i = 0; i < 100; ++i) {
    node.Advance(std::chrono::milliseconds(100));
    if (conditions.empty() || conditions.back() != node.Condition()) {
      conditions.push_back(node.Condition());
    }
    if (phases.empty() || phases.back() != node.Phase("p")) phases.push_back(node.Phase("p"));
  }
  EXPECT_THAT(node.Attempts(), ElementsAre(1, 1, 1, 1, 1)) << "those that had succeeded too";
  EXPECT_EQ(node.machine.sandboxes.size(), 1u);
  EXPECT_EQ(node.machine.sandboxes.begin()->first, sandbox);
  EXPECT_THAT(phases, ElementsAre("Running"));
  EXPECT_EQ(node.Condition(), "False");
  const api::Value statuses = (*node.Pod("p"))["status"]["containerStatuses"];
  for (api::Value status : statuses.elements()) EXPECT_EQ(status["restartCount"].integer(), 1);
  EXPECT_EQ(statuses.at(2)["lastState"]["terminated"]["exitCode"].integer(), 42);
  EXPECT_EQ(statuses.at(1)["lastState"]["terminated"]["exitCode"].integer(), 137) << "killed";
}

TEST(RestartAllContainers, InitContainersRunAgainFirst) {
  RestartingPod node;
  node.Create();
  node.Advance(seconds(20));
  const auto started = [&](const char* name) {
    return node.Containers("p", name).back()->status.started_at;
  };
  EXPECT_LE(started("setup"), started("side"));
  EXPECT_LT(started("setup"), started("watcher"));
  EXPECT_LE(started("side"), started("once"));
}

TEST(RestartAllContainers, IsContinuedByAnAgentThatStartsInTheMiddle) {
  for (int milliseconds = 0; milliseconds <= 1500; milliseconds += 50) {
    SCOPED_TRACE(milliseconds);
    RestartingPod node;
    node.Create();
    node.Advance(std::chrono::milliseconds(5'900 + milliseconds));
    node.KillAgent();
    node.Advance(seconds(1));
    node.StartAgent();
    node.Advance(seconds(5));
    EXPECT_THAT(node.Attempts(), ElementsAre(1, 1, 1, 1, 1));
    EXPECT_EQ(node.Phase("p"), "Running");
  }
}

TEST(RestartAllContainers, RepeatedRestartsBackOff) {
  RestartingPod node(100);
  node.Create();
  node.Advance(seconds(8));
  EXPECT_EQ(node.Attempts().back(), 1) << "at once the first time";
  node.Advance(seconds(7));
  EXPECT_EQ(node.Attempts().back(), 1);
  EXPECT_EQ(
      (*node.Pod("p"))["status"]["containerStatuses"].at(2)["state"]["waiting"]["reason"].str(),
      "CrashLoopBackOff");
  node.Advance(seconds(9));
  EXPECT_THAT(node.Attempts(), ElementsAre(2, 2, 2, 2, 2));
}

TEST(RestartAllContainers, IsIgnoredWithTheGateOff) {
  RestartingPod node;
  node.KillAgent();
  node.gates = node.gates.With(Gate::kRestartAllContainersOnContainerExits, false)
                   .With(Gate::kNodeDeclaredFeatures, false);
  node.StartAgent();
  node.Create();
  node.Advance(seconds(20));
  EXPECT_THAT(node.Attempts(), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_EQ(node.Condition(), "(none)");
}

TEST(RestartAllContainers, ASidecarCanTriggerIt) {
  RestartingPod node;
  node.CreatePod("p", StrCat(R"("restartPolicy":"Never","initContainers":[{"name":"setup",
    "image":"busybox:1"},{"name":"watcher","image":"busybox:1","restartPolicy":"Always",
    "restartPolicyRules":[)",
                             Rule("RestartAllContainers", "In", "42"), R"(]}],
    "containers":[{"name":"a","image":"busybox:1"}])"));
  node.Advance(seconds(20));
  for (const char* name : {"setup", "watcher", "a"}) {
    EXPECT_EQ(node.Containers("p", name).back()->status.attempt, 1u) << name;
  }
  EXPECT_EQ(node.Phase("p"), "Running");
}

}  // namespace
}  // namespace drakkar::node
