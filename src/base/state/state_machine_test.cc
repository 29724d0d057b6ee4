#include "base/state/state_machine.h"

#include <gtest/gtest.h>

namespace drakkar {
namespace {

enum class Door { kOpen, kClosed, kLocked, kBroken };
enum class Act { kClose, kOpen, kLock, kUnlock, kKick };

std::string_view Name(Door door) {
  constexpr std::string_view kNames[] = {"open", "closed", "locked", "broken"};
  return kNames[static_cast<std::size_t>(door)];
}
std::string_view Name(Act act) {
  constexpr std::string_view kNames[] = {"close", "open", "lock", "unlock", "kick"};
  return kNames[static_cast<std::size_t>(act)];
}

constexpr std::array kDoors = {Door::kOpen, Door::kClosed, Door::kLocked, Door::kBroken};
constexpr TransitionTable<Door, Act, 5> kDoorTable = {{
    {Door::kOpen, Act::kClose, Door::kClosed},
    {Door::kClosed, Act::kOpen, Door::kOpen},
    {Door::kClosed, Act::kLock, Door::kLocked},
    {Door::kLocked, Act::kUnlock, Door::kClosed},
    {Door::kLocked, Act::kKick, Door::kBroken},
}};
static_assert(FindFlaw(kDoorTable, kDoors, {Door::kBroken}) == TableFlaw::kNone);

TEST(StateMachine, FollowsTheRowsOfItsTable) {
  StateMachine<kDoorTable> door(Door::kOpen);
  EXPECT_FALSE(door.Accepts(Act::kLock));
  EXPECT_EQ(door.Apply(Act::kClose), Door::kClosed);
  EXPECT_EQ(door.Apply(Act::kLock), Door::kLocked);
  EXPECT_EQ(door.state(), Door::kLocked);
  EXPECT_EQ(door.Apply(Act::kKick), Door::kBroken);
  EXPECT_FALSE(door.Accepts(Act::kUnlock));
}

TEST(StateMachineDeathTest, StopsTheProcessWithStateAndEventWhenNoRowFits) {
  StateMachine<kDoorTable> door(Door::kOpen);
  EXPECT_DEATH(door.Apply(Act::kLock), "state open has no transition for event lock");
}

TEST(StateMachine, FindsEachFlawOfATable) {
  using Rows = TransitionTable<Door, Act, 3>;
  constexpr std::array kThree = {Door::kOpen, Door::kClosed, Door::kBroken};
  EXPECT_EQ(FindFlaw(Rows{{{Door::kOpen, Act::kClose, Door::kClosed},
                           {Door::kOpen, Act::kClose, Door::kBroken},
                           {Door::kClosed, Act::kKick, Door::kBroken}}},
                     kThree, {Door::kBroken}),
            TableFlaw::kAmbiguous);
  EXPECT_EQ(FindFlaw(Rows{{{Door::kOpen, Act::kClose, Door::kClosed},
                           {Door::kClosed, Act::kOpen, Door::kOpen},
                           {Door::kBroken, Act::kOpen, Door::kOpen}}},
                     kThree, {}),
            TableFlaw::kUnreachable);
  EXPECT_EQ(FindFlaw(Rows{{{Door::kOpen, Act::kClose, Door::kClosed},
                           {Door::kOpen, Act::kKick, Door::kBroken},
                           {Door::kClosed, Act::kClose, Door::kClosed}}},
                     kThree, {Door::kBroken}),
            TableFlaw::kDeadEnd)
      << "a row that leads back to its own state is no way out";
  EXPECT_EQ(FindFlaw(Rows{{{Door::kOpen, Act::kClose, Door::kClosed},
                           {Door::kClosed, Act::kKick, Door::kBroken},
                           {Door::kBroken, Act::kOpen, Door::kOpen}}},
                     kThree, {Door::kBroken}),
            TableFlaw::kLeavesTerminal);
}

}  // namespace
}  // namespace drakkar
