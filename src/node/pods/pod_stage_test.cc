#include "node/pods/pod_stage.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/env/random.h"
#include "node/dra/dra_stages.h"
#include "node/pods/pod_side_states.h"

namespace drakkar::node {
namespace {

// Walks a whole table: every state is reachable, every non-terminal state can reach a terminal one
// (or, without any, the initial state), every event is used, names are unique, and no state has two
// transitions for one event.
template <typename State, typename Event, std::size_t kRows, std::size_t kStates>
void WalkTable(const TransitionTable<State, Event, kRows>& table,
               const std::array<State, kStates>& states, const std::set<State>& terminal,
               std::size_t event_count) {
  std::map<State, std::set<State>> ways;
  std::map<std::pair<State, Event>, State> naive;
  std::set<Event> events;
  for (const auto& row : table) {
    ways[row.from].insert(row.to);
    events.insert(row.event);
    EXPECT_TRUE(naive.emplace(std::pair(row.from, row.event), row.to).second)
        << Name(row.from) << " has two ways for " << Name(row.event);
  }
  EXPECT_EQ(events.size(), event_count) << "an event that leads nowhere";
  auto reach = [&](State from) {
    std::set<State> reached{from};
    std::vector<State> next{from};
    while (!next.empty()) {
      const State state = next.back();
      next.pop_back();
      for (const State to : ways[state]) {
        if (reached.insert(to).second) next.push_back(to);
      }
    }
    return reached;
  };
  const std::set<State> goals = terminal.empty() ? std::set<State>{states[0]} : terminal;
  std::set<std::string_view> names;
  for (const State state : states) {
    EXPECT_TRUE(reach(states[0]).contains(state)) << Name(state) << " is never reached";
    EXPECT_NE(Name(state), "?");
    EXPECT_TRUE(names.insert(Name(state)).second) << Name(state) << " names two states";
    if (terminal.contains(state)) {
      EXPECT_TRUE(ways[state].empty()) << Name(state) << " is not final";
      continue;
    }
    const std::set<State> reached = reach(state);
    EXPECT_TRUE(std::ranges::any_of(goals, [&](State goal) { return reached.contains(goal); }))
        << Name(state) << " never ends";
  }
  std::set<std::string_view> event_names;
  for (const Event event : events) {
    EXPECT_NE(Name(event), "?");
    EXPECT_TRUE(event_names.insert(Name(event)).second) << Name(event) << " names two events";
  }
  // For any order of events, the machine goes where a plain map of the rows says, or stays.
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    SeededRandom random(seed);
    State model = states[0];
    State state = states[0];
    for (int step = 0; step < 200; ++step) {
      const Event event = static_cast<Event>(random.Below(event_count));
      const auto found = naive.find({model, event});
      const auto next = NextState(table, state, event);
      ASSERT_EQ(next.has_value(), found != naive.end()) << Name(state) << " " << Name(event);
      if (!next) continue;
      model = found->second;
      state = *next;
      ASSERT_EQ(state, model);
    }
  }
}

TEST(PodStage, TheWholeTableIsSound) {
  WalkTable(kPodTable, kPodStages, {PodStage::kFinished},
            static_cast<std::size_t>(PodEvent::kFoundRunning) + 1);
}

TEST(PodStage, TheSmallerTablesAreSound) {
  WalkTable(kStatusTable, kStatusWrites, {},
            static_cast<std::size_t>(StatusEvent::kConflicted) + 1);
  WalkTable(kDriverTable, kDriverCalls, {DriverCall::kDone},
            static_cast<std::size_t>(DriverEvent::kNotNeeded) + 1);
  WalkTable(kStopTable, kContainerStops, {ContainerStop::kStopped},
            static_cast<std::size_t>(StopEvent::kRuntimeStopped) + 1);
}

TEST(PodStage, TheTablesOfClaimPreparationAreSound) {
  WalkTable(kClaimTable, kClaimPhases, {ClaimPhase::kReleased},
            static_cast<std::size_t>(ClaimEvent::kUnprepared) + 1);
  WalkTable(kPrepareTable, kPrepareStages, {PrepareStage::kSucceeded, PrepareStage::kFailed},
            static_cast<std::size_t>(PrepareEvent::kError) + 1);
  WalkTable(kUnprepareTable, kUnprepareStages,
            {UnprepareStage::kSucceeded, UnprepareStage::kFailed},
            static_cast<std::size_t>(UnprepareEvent::kError) + 1);
}

TEST(PodStage, TakesAPodDownInOneOrder) {
  StateMachine<kPodTable> pod(PodStage::kAdmitting);
  for (const PodEvent event :
       {PodEvent::kAdmitted, PodEvent::kStopRequested, PodEvent::kContainersStopped,
        PodEvent::kSandboxesStopped, PodEvent::kClaimsUnprepared, PodEvent::kVolumesRemoved,
        PodEvent::kDeletionRequested, PodEvent::kEndReported, PodEvent::kRemainsRemoved,
        PodEvent::kObjectDeleted, PodEvent::kObjectGone}) {
    const PodStage before = pod.state();
    EXPECT_GT(pod.Apply(event), before) << "stages are ordered";
  }
  EXPECT_EQ(pod.state(), PodStage::kFinished);
}

TEST(PodStage, OnlyTeardownStagesReturnToStoppingContainers) {
  for (const PodStage stage : kPodStages) {
    const auto next = NextState(kPodTable, stage, PodEvent::kFoundRunning);
    EXPECT_EQ(next.has_value(), IsStopping(stage) && stage != PodStage::kStoppingContainers &&
                                    stage != PodStage::kFinished)
        << Name(stage);
    if (next) {
      EXPECT_EQ(*next, PodStage::kStoppingContainers);
    }
  }
}

TEST(PodStage, EachOperationStartsOnlyInItsStageAndWithoutAnotherInFlight) {
  const std::size_t count = static_cast<std::size_t>(PodOperation::kDeletingObject) + 1;
  ASSERT_EQ(kPodOperations.size() + 1, count) << "all but kNone have a row";
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < count; ++i) {
    const PodOperation operation = static_cast<PodOperation>(i);
    EXPECT_NE(Name(operation), "?");
    EXPECT_TRUE(names.insert(Name(operation)).second) << Name(operation);
    std::size_t stages = 0;
    for (const PodStage stage : kPodStages) {
      stages += MayBegin(operation, stage, PodOperation::kNone) ? 1 : 0;
      for (std::size_t j = 1; j < count; ++j) {
        const PodOperation current = static_cast<PodOperation>(j);
        const bool goes_on =
            stage == PodStage::kRunning && ((operation == PodOperation::kCreatingContainer &&
                                             current == PodOperation::kFetchingEnvironment) ||
                                            (operation == PodOperation::kStartingContainer &&
                                             current == PodOperation::kCreatingContainer));
        EXPECT_EQ(MayBegin(operation, stage, current), goes_on)
            << Name(operation) << " in " << Name(stage) << " after " << Name(current);
      }
    }
    EXPECT_EQ(stages, operation == PodOperation::kNone ? 0u : 1u) << Name(operation);
  }
}

}  // namespace
}  // namespace drakkar::node
