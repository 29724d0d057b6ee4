// The order in which pods end when the machine shuts down, and the D-Bus messages that announce it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "api/json/reader.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "node/shutdown/dbus_message.h"
#include "node/shutdown/shutdown_manager.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

TEST(ShutdownPeriods, ThePeriodOfAPodIsTheHighestThatIsNotAboveIt) {
  const std::vector<ShutdownPeriod> periods = {{-5, 1}, {0, 2}, {1000, 3}};
  EXPECT_EQ(PeriodOf(periods, -100), 0u) << "below all: the lowest";
  EXPECT_EQ(PeriodOf(periods, -5), 0u);
  EXPECT_EQ(PeriodOf(periods, -1), 0u);
  EXPECT_EQ(PeriodOf(periods, 0), 1u);
  EXPECT_EQ(PeriodOf(periods, 999), 1u);
  EXPECT_EQ(PeriodOf(periods, 5000), 2u);
  EXPECT_EQ(Total(periods), seconds(6));
  EXPECT_THAT(PeriodsOf(seconds(30), seconds(10)),
              ElementsAre(ShutdownPeriod{0, 20}, ShutdownPeriod{2'000'000'000, 10}));
  EXPECT_TRUE(PeriodsOf(seconds(0), seconds(0)).empty());
}

class ShutdownManagerTest : public ::testing::Test {
 protected:
  ShutdownManager Make(std::vector<ShutdownPeriod> periods) {
    return ShutdownManager(
        {.loop = loop_,
         .periods = std::move(periods),
         .active_pods = [this] { return pods_; },
         .evict =
             [this](const std::string& uid, const PodVerdict& verdict, Duration grace) {
               EXPECT_EQ(verdict.reason, "Terminated");
               EXPECT_EQ(verdict.message,
                         "Pod was terminated in response to imminent node shutdown.");
               EXPECT_TRUE(verdict.is_disruption);
               log_.push_back(
                   StrCat(uid, " ", std::chrono::duration_cast<seconds>(grace).count(), "s"));
             },
         .is_gone = [this](const std::string& uid) { return gone_.contains(uid); },
         .on_changed = [this](const std::string& message) { log_.push_back(message); },
         .on_done = [this] { log_.push_back("done"); }});
  }
  void AddPod(std::string_view uid, int priority, int grace) {
    auto tree = api::ParseJson(StrCat(R"({"metadata":{"name":"p","uid":")", uid,
                                      R"("},"spec":{"priority":)", priority,
                                      R"(,"terminationGracePeriodSeconds":)", grace, "}}"));
    pods_.push_back(std::make_shared<const api::Object>(*std::move(tree)));
  }

  SeededLoop loop_;
  std::vector<api::ObjectPtr> pods_;
  std::set<std::string> gone_;
  std::vector<std::string> log_;
};

TEST_F(ShutdownManagerTest, PodsOfLowPriorityEndFirstAndTheOthersWhenTheyHave) {
  AddPod("critical", 2'000'000'000, 30);
  AddPod("slow", 0, 60);
  AddPod("quick", 7, 2);
  ShutdownManager manager = Make(PeriodsOf(seconds(30), seconds(10)));
  EXPECT_FALSE(manager.Admit());
  EXPECT_FALSE(manager.WhyNotReady());
  manager.Begin();
  manager.Begin();
  EXPECT_EQ(manager.Admit()->reason, "NodeShutdown");
  EXPECT_EQ(*manager.WhyNotReady(), "node is shutting down");
  EXPECT_THAT(log_,
              ElementsAre("Shutdown manager detected shutdown event", "slow 20s", "quick 2s"));
  log_.clear();
  gone_ = {"quick"};
  loop_.Advance(seconds(5));
  EXPECT_THAT(log_, ElementsAre());
  gone_.insert("slow");
  loop_.Advance(seconds(1));
  EXPECT_THAT(log_, ElementsAre("critical 10s"));
  log_.clear();
  gone_.insert("critical");
  loop_.Advance(seconds(1));
  EXPECT_THAT(log_, ElementsAre("done"));
  EXPECT_TRUE(manager.is_shutting_down()) << "until the machine is off";
}

TEST_F(ShutdownManagerTest, AGroupThatDoesNotEndInTimeDoesNotStopTheOthers) {
  AddPod("stuck", 0, 60);
  AddPod("high", 100, 60);
  ShutdownManager manager = Make({{0, 5}, {50, 0}, {100, 3}});
  manager.Begin();
  loop_.Advance(seconds(4));
  EXPECT_THAT(log_, ElementsAre("Shutdown manager detected shutdown event", "stuck 5s"));
  loop_.Advance(seconds(2));
  EXPECT_EQ(log_.back(), "high 3s");
  loop_.Advance(seconds(4));
  EXPECT_EQ(log_.back(), "done");
}

TEST_F(ShutdownManagerTest, ACancelledShutdownLeavesTheOtherPodsAlone) {
  AddPod("low", 0, 60);
  AddPod("high", 100, 60);
  ShutdownManager manager = Make({{0, 5}, {100, 3}});
  manager.Cancel();
  EXPECT_THAT(log_, ElementsAre());
  manager.Begin();
  manager.Cancel();
  loop_.Advance(seconds(60));
  EXPECT_THAT(log_, ElementsAre("Shutdown manager detected shutdown event", "low 5s",
                                "Shutdown manager detected shutdown cancellation"));
  EXPECT_FALSE(manager.Admit());
}

TEST_F(ShutdownManagerTest, ANodeWithoutPeriodsDoesNothing) {
  AddPod("p", 0, 60);
  ShutdownManager manager = Make({});
  manager.Begin();
  EXPECT_FALSE(manager.is_shutting_down());
  EXPECT_THAT(log_, ElementsAre());
}

// As `busctl` sends it: the fields of a header are aligned to 8 bytes each.
TEST(DbusMessage, ACallIsEncodedAsTheSpecificationSays) {
  const std::string call = EncodeDbusCall(
      1,
      {.destination = "d.e", .path = "/p", .interface = "i.f", .member = "M", .strings = {"ab"}});
  const std::string expected =
      std::string("l\x01\x00\x01\x07\x00\x00\x00\x01\x00\x00\x00\x47\x00\x00\x00", 16) +
      std::string("\x01\x01o\x00\x02\x00\x00\x00/p\x00\x00\x00\x00\x00\x00", 16) +
      std::string("\x02\x01s\x00\x03\x00\x00\x00i.f\x00\x00\x00\x00\x00", 16) +
      std::string("\x03\x01s\x00\x01\x00\x00\x00M\x00\x00\x00\x00\x00\x00\x00", 16) +
      std::string(
          "\x06\x01s\x00\x03\x00\x00\x00"
          "d.e\x00\x00\x00\x00\x00",
          16) +
      std::string("\x08\x01g\x00\x01s\x00\x00", 8) +
      std::string(
          "\x02\x00\x00\x00"
          "ab\x00",
          7);
  EXPECT_EQ(call, expected);
}

TEST(DbusMessage, IsReadInPiecesAndWrittenAgain) {
  const DbusMessage signal{.type = DbusMessage::Type::kSignal,
                           .serial = 9,
                           .path = "/org/freedesktop/login1",
                           .interface = "org.freedesktop.login1.Manager",
                           .member = "PrepareForShutdown",
                           .signature = "b",
                           .body = std::string("\x01\x00\x00\x00", 4)};
  const DbusMessage answer{.type = DbusMessage::Type::kReturn,
                           .serial = 10,
                           .reply_to = 3,
                           .signature = "v",
                           .body = std::string("\x01t\x00\x00\x00\x00\x00\x00", 8) +
                                   std::string("\x40\x4b\x4c\x00\x00\x00\x00\x00", 8)};
  const std::string stream = EncodeDbus(signal) + EncodeDbus(answer);
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    DbusReader reader;
    std::vector<DbusMessage> messages;
    for (const std::string& part : {stream.substr(0, cut), stream.substr(cut)}) {
      reader.Feed(part);
      for (auto next = reader.Next(); *next; next = reader.Next()) messages.push_back(**next);
    }
    ASSERT_THAT(messages, ElementsAre(signal, answer)) << cut;
  }
  EXPECT_TRUE(*DbusBool(signal));
  EXPECT_EQ(*DbusVariantNumber(answer), 5'000'000u);
  EXPECT_FALSE(DbusBool(answer).ok());
  EXPECT_FALSE(DbusVariantNumber(signal).ok());
}

TEST(DbusMessage, WhatIsNoMessageIsAnError) {
  const auto error = [](std::string bytes) {
    DbusReader reader;
    reader.Feed(bytes);
    auto next = reader.Next();
    return next.ok() ? (*next ? "(message)" : "(more)") : next.error().message;
  };
  std::string good = EncodeDbusCall(1, {.destination = "d", .path = "/", .member = "M"});
  EXPECT_EQ(error(good), "(message)");
  EXPECT_EQ(error(good.substr(0, 12)), "(more)");
  std::string changed = good;
  changed[0] = 'B';
  EXPECT_EQ(error(changed), "not a D-Bus message");
  changed = good;
  changed[6] = '\x7f';
  EXPECT_EQ(error(changed), "a D-Bus message is too large");
  changed = good;
  changed[16 + 4] = '\x7f';
  EXPECT_EQ(error(changed), "a D-Bus message is too short");
}

}  // namespace
}  // namespace drakkar::node
