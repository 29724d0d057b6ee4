#include "apiserver/http/flow_control.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace drakkar::apiserver {
namespace {

using Level = FlowControl::Level;

class FlowControlTest : public ::testing::Test {
 protected:
  // Whether the request was taken; those that started are in `tickets`, in order.
  bool Enter(const std::string& user, Level level = Level::kOther) {
    return control->Enter(user, level, [this, user](FlowControl::Ticket ticket) {
      started.push_back(user);
      tickets.push_back(std::move(ticket));
    });
  }

  // Otherwise the end of a ticket would start further requests.
  void TearDown() override { control.reset(); }

  std::shared_ptr<FlowControl> control = std::make_shared<FlowControl>(FlowControl::Limits{
      .in_progress = 8, .per_user = 2, .reserved = 2, .queued_per_user = 3, .queued = 100});
  std::vector<std::string> started;
  std::vector<FlowControl::Ticket> tickets;
};

TEST_F(FlowControlTest, AUserPastItsShareWaitsAndIsThenRejected) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Enter("a")) << i;
  EXPECT_EQ(started.size(), 2u);
  EXPECT_EQ(control->queued(), 3u);
  EXPECT_FALSE(Enter("a"));
  // Others are not affected.
  EXPECT_TRUE(Enter("b"));
  EXPECT_EQ(started.back(), "b");
}

TEST_F(FlowControlTest, AWaitingRequestStartsWhenAnotherOfItsUserEnds) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Enter("a"));
  EXPECT_EQ(started.size(), 2u);
  tickets[0].Release();
  EXPECT_EQ(started.size(), 3u);
  EXPECT_EQ(control->in_progress(), 2u);
  std::exchange(tickets, {}).clear();
  EXPECT_EQ(control->in_progress(), 0u);
}

TEST_F(FlowControlTest, ComponentsHaveAReserve) {
  for (const std::string user : {"a", "b", "c", "d"}) {
    EXPECT_TRUE(Enter(user));
    EXPECT_TRUE(Enter(user));
  }
  EXPECT_EQ(started.size(), 6u);
  EXPECT_TRUE(Enter("node", Level::kSystem));
  EXPECT_TRUE(Enter("node", Level::kSystem));
  EXPECT_EQ(started.size(), 8u);
  EXPECT_TRUE(Enter("node", Level::kSystem));
  EXPECT_EQ(started.size(), 8u);
}

TEST_F(FlowControlTest, AdministratorsNeverWait) {
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Enter("admin", Level::kExempt));
  EXPECT_EQ(started.size(), 100u);
  EXPECT_EQ(control->in_progress(), 0u);
}

TEST_F(FlowControlTest, WaitingUsersTakeTurns) {
  for (const std::string user : {"a", "b", "c"}) {
    EXPECT_TRUE(Enter(user));
    EXPECT_TRUE(Enter(user));
  }
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Enter("d"));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Enter("e"));
  started.clear();
  std::vector<FlowControl::Ticket> first = std::exchange(tickets, {});
  first.clear();
  EXPECT_EQ(started, (std::vector<std::string>{"d", "e", "d", "e"}));
  std::exchange(tickets, {}).clear();
  EXPECT_EQ(started.back(), "d");
}

TEST_F(FlowControlTest, ARequestThatEndsAtOnceDoesNotGrowTheStack) {
  const auto narrow = std::make_shared<FlowControl>(FlowControl::Limits{.in_progress = 4,
                                                                        .per_user = 1,
                                                                        .reserved = 0,
                                                                        .queued_per_user = 200'000,
                                                                        .queued = 200'000});
  FlowControl::Ticket first;
  std::size_t ended = 0;
  EXPECT_TRUE(narrow->Enter("a", Level::kOther,
                            [&](FlowControl::Ticket ticket) { first = std::move(ticket); }));
  for (int i = 0; i < 200'000; ++i) {
    EXPECT_TRUE(narrow->Enter("a", Level::kOther, [&](const FlowControl::Ticket&) { ++ended; }));
  }
  first.Release();
  EXPECT_EQ(ended, 200'000u);
  EXPECT_EQ(narrow->queued(), 0u);
}

TEST(FlowControlLevel, FollowsNameAndGroups) {
  const auto level = [](std::string name, std::vector<std::string> groups) {
    return FlowControl::LevelOf({.name = std::move(name), .groups = std::move(groups)});
  };
  EXPECT_EQ(level("admin", {"system:masters"}), Level::kExempt);
  EXPECT_EQ(level("system:node:a", {"system:nodes"}), Level::kSystem);
  EXPECT_EQ(level("system:kube-scheduler", {}), Level::kSystem);
  EXPECT_EQ(level("system:serviceaccount:kube-system:gc", {"system:serviceaccounts:kube-system"}),
            Level::kSystem);
  EXPECT_EQ(level("system:serviceaccount:team:bot", {"system:serviceaccounts:team"}),
            Level::kOther);
  EXPECT_EQ(level("alice", {"system:authenticated"}), Level::kOther);
  EXPECT_EQ(level("system:anonymous", {}), Level::kOther);
}

}  // namespace
}  // namespace drakkar::apiserver
