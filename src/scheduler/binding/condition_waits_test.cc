// Several pods, several claims, several devices and several conditions at once.
#include "scheduler/binding/condition_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "scheduler/binding/binding_conditions.h"

namespace drakkar::scheduler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using End = ConditionWaits::End;

struct More {
  std::string metadata = "";
  std::string uid = "";
  bool is_allocated = true;
};

// Claims with the devices x and y. Each has the conditions A and B and the failure conditions F and
// G. A claim is described by the conditions that are True: "xA yB".
class ConditionWaitsTest : public ::testing::Test {
 protected:
  ConditionWaitsTest() {
    claims_.SetChangeHandler(
        [this](const std::string& key, const auto&, const auto&) { waits_.OnClaimChanged(key); });
  }

  api::ObjectPtr MakeClaim(const std::string& name, const std::string& is_true, const More& more) {
    std::string results, statuses;
    for (const std::string device : {"x", "y"}) {
      const char* comma = results.empty() ? "" : ",";
      results += StrCat(comma, R"({"request":"r","driver":"d","pool":"p","device":")", device,
                        R"(","bindingConditions":["A","B"],"bindingFailureConditions":["F","G"]})");
      std::vector<std::string> conditions;
      for (const std::string type : {"A", "B", "F", "G"}) {
        const bool on = is_true.find(device + type) != std::string::npos;
        conditions.push_back(StrCat(R"({"type":")", type, R"(","status":")", on ? "True" : "False",
                                    R"(","reason":"R","message":"M"})"));
      }
      statuses += StrCat(comma, R"({"driver":"d","pool":"p","device":")", device,
                         R"(","conditions":[)", Join(conditions, ","), "]}");
    }
    auto tree = api::ParseJson(
        StrCat(R"({"metadata":{"namespace":"ns","name":")", name, R"(","uid":")",
               more.uid.empty() ? name : more.uid, R"(","resourceVersion":")", ++version_, "\"",
               more.metadata, R"(},"spec":{"devices":{}},"status":{)",
               more.is_allocated ? StrCat(R"("allocation":{"devices":{"results":[)", results,
                                          R"(]}},"devices":[)", statuses, "]")
                                 : "",
               "}}"));
    EXPECT_TRUE(tree.ok());
    return std::make_shared<const api::Object>(*tree);
  }
  void Set(const std::string& name, const std::string& is_true, const More& more = {}) {
    claims_.Observe(MakeClaim(name, is_true, more));
  }
  void Wait(const std::string& pod, std::vector<std::pair<std::string, int>> claims) {
    std::vector<ConditionWaits::Claim> wanted;
    for (const auto& [name, in_seconds] : claims) {
      wanted.push_back({StrCat("ns/", name), name,
                        in_seconds == 0 ? ConditionWaits::kNoDeadline
                                        : loop_.clock().Monotonic() + seconds(in_seconds)});
    }
    waits_.Wait(pod, std::move(wanted), [this, pod](ConditionWaits::Outcome outcome) {
      ends_.push_back(StrCat(pod, ":", static_cast<int>(outcome.end)));
      last_ = std::move(outcome);
    });
    loop_.RunUntilIdle();
  }
  static std::string Ended(const std::string& pod, End end) {
    return StrCat(pod, ":", static_cast<int>(end));
  }

  SeededLoop loop_;
  device::AllocatedState allocated_;
  ClaimCache claims_{allocated_};
  ConditionWaits waits_{loop_, claims_};
  std::vector<std::string> ends_;
  ConditionWaits::Outcome last_{};
  int version_ = 0;
};

constexpr char kReady[] = "xA xB yA yB";

TEST_F(ConditionWaitsTest, EveryConditionOfEveryDeviceOfEveryClaimMustBeTrue) {
  for (const std::string missing : {"xA", "xB", "yA", "yB"}) {
    std::string but_one = kReady;
    but_one.replace(but_one.find(missing), 2, "..");
    for (const std::string name : {"c", "d"}) {
      ends_.clear();
      Set("c", kReady);
      Set("d", kReady);
      Set(name, but_one);
      Wait("p", {{"c", 60}, {"d", 60}});
      EXPECT_THAT(ends_, IsEmpty()) << name << " without " << missing;
      EXPECT_EQ(waits_.size(), 1u);
      Set(name, kReady);
      EXPECT_THAT(ends_, ElementsAre(Ended("p", End::kReady)));
      EXPECT_EQ(waits_.size(), 0u);
    }
  }
}

TEST_F(ConditionWaitsTest, AnyFailureOfAnyDeviceOfAnyClaimEndsTheWait) {
  for (const std::string failure : {"xF", "xG", "yF", "yG"}) {
    for (const std::string name : {"c", "d"}) {
      ends_.clear();
      Set("c", kReady);
      Set("d", "");
      Wait("p", {{"c", 60}, {"d", 60}});
      EXPECT_THAT(ends_, IsEmpty());
      Set(name, StrCat(kReady, " ", failure));
      EXPECT_THAT(ends_, ElementsAre(Ended("p", End::kFailed)));
      EXPECT_THAT(last_.unusable, ElementsAre("ns/" + name));
      EXPECT_EQ(last_.message,
                StrCat("device binding failed: claim=", name, ", device=d/p/", failure.substr(0, 1),
                       ", condition=", failure.substr(1), ", reason=R, message=\"M\""));
    }
  }
}

TEST_F(ConditionWaitsTest, AllClaimsThatFailedOrTimedOutAreUnusableAndFailuresAreReportedFirst) {
  Set("late", "");
  Set("failed", "");
  Set("patient", "");
  Set("done", kReady);
  Wait("p", {{"late", 5}, {"failed", 60}, {"patient", 60}, {"done", 5}});
  Set("failed", "xF");
  EXPECT_THAT(last_.unusable, ElementsAre("ns/failed"));
  ends_.clear();
  Set("failed", "");
  Wait("p", {{"late", 5}, {"failed", 60}, {"patient", 60}, {"done", 5}});
  loop_.Advance(seconds(5));
  EXPECT_THAT(ends_, ElementsAre(Ended("p", End::kTimeout)));
  EXPECT_EQ(last_.message, "device binding timeout: claim=late, device=d/p/x, condition=A");
  EXPECT_THAT(last_.unusable, ElementsAre("ns/late"));
  ends_.clear();
  Set("failed", "yG");
  waits_.Wait("p",
              {{"ns/late", "late", loop_.clock().Monotonic()},
               {"ns/failed", "failed", loop_.clock().Monotonic()}},
              [this](ConditionWaits::Outcome outcome) { last_ = std::move(outcome); });
  loop_.RunUntilIdle();
  EXPECT_EQ(last_.end, End::kFailed);
  EXPECT_THAT(last_.unusable, ElementsAre("ns/late", "ns/failed"));
}

TEST_F(ConditionWaitsTest, EachPodEndsAtItsOwnDeadline) {
  Set("c", "");
  Set("d", "");
  Wait("late", {{"c", 9}});
  Wait("early", {{"c", 3}, {"d", 7}});
  Wait("also early", {{"d", 3}});
  Wait("never", {{"d", 0}});
  loop_.Advance(seconds(3) - milliseconds(1));
  EXPECT_THAT(ends_, IsEmpty());
  loop_.Advance(milliseconds(1));
  EXPECT_THAT(ends_,
              ElementsAre(Ended("also early", End::kTimeout), Ended("early", End::kTimeout)));
  ends_.clear();
  loop_.Advance(seconds(5));
  EXPECT_THAT(ends_, IsEmpty());
  loop_.Advance(seconds(1));
  EXPECT_THAT(ends_, ElementsAre(Ended("late", End::kTimeout)));
  loop_.Advance(seconds(1000));
  EXPECT_EQ(waits_.size(), 1u);
}

TEST_F(ConditionWaitsTest, ADeadlineOfAReadyClaimEndsNothing) {
  Set("ready", kReady);
  Set("waiting", "");
  Wait("p", {{"ready", 3}, {"waiting", 9}});
  loop_.Advance(seconds(4));
  EXPECT_THAT(ends_, IsEmpty());
  loop_.Advance(seconds(5));
  EXPECT_THAT(ends_, ElementsAre(Ended("p", End::kTimeout)));
  EXPECT_THAT(last_.unusable, ElementsAre("ns/waiting"));
}

TEST_F(ConditionWaitsTest, AllPodsOfAClaimAreWoken) {
  Set("c", "");
  Set("d", "");
  for (const char* pod : {"p1", "p2", "p3"}) Wait(pod, {{"c", 60}});
  Wait("other", {{"d", 60}});
  Set("c", kReady);
  EXPECT_THAT(ends_, ElementsAre(Ended("p1", End::kReady), Ended("p2", End::kReady),
                                 Ended("p3", End::kReady)));
  EXPECT_EQ(waits_.size(), 1u);
  Set("c", "xF");
  EXPECT_EQ(ends_.size(), 3u) << "nobody waits for it any more";
}

TEST_F(ConditionWaitsTest, AClaimThatIsGoneReplacedDeallocatedOrBeingDeletedEndsTheWait) {
  const auto wait = [&] {
    ends_.clear();
    Set("c", "");
    Set("d", "");
    Wait("p", {{"c", 60}, {"d", 60}});
  };
  wait();
  claims_.Remove(MakeClaim("d", "", {}));
  EXPECT_THAT(ends_, ElementsAre(Ended("p", End::kGone)));
  EXPECT_EQ(last_.message, "claim ns/d got deleted in the meantime");
  wait();
  Set("d", kReady, {.uid = "another"});
  EXPECT_THAT(ends_, ElementsAre(Ended("p", End::kGone)));
  wait();
  Set("d", "", {.is_allocated = false});
  EXPECT_THAT(ends_, ElementsAre(Ended("p", End::kGone)));
  EXPECT_EQ(last_.message, "claim ns/d got deallocated elsewhere in the meantime");
  EXPECT_THAT(last_.unusable, IsEmpty());
  wait();
  Set("d", kReady, {.metadata = R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")"});
  EXPECT_THAT(ends_, ElementsAre(Ended("p", End::kDeleted)));
  EXPECT_THAT(last_.unusable, ElementsAre("ns/d"));
}

TEST_F(ConditionWaitsTest, ALostNodeEndsTheWaitWithTheClaimsThatWereStillWaiting) {
  Set("c", kReady);
  Set("d", "");
  Set("e", "yB");
  Set("replaced", "");
  Wait("p", {{"c", 60}, {"d", 60}, {"e", 60}});
  Wait("other", {{"d", 60}});
  waits_.EndForNode("p", "cordoned");
  EXPECT_THAT(ends_, ElementsAre(Ended("p", End::kNodeLost)));
  EXPECT_EQ(last_.message, "cordoned");
  EXPECT_THAT(last_.unusable, ElementsAre("ns/d", "ns/e"));
  waits_.EndForNode("p", "again");
  waits_.EndForNode("never seen", "x");
  EXPECT_EQ(ends_.size(), 1u);
  EXPECT_EQ(waits_.size(), 1u);
}

TEST_F(ConditionWaitsTest, ACancelledWaitEndsOnceAndLeavesNoDeadline) {
  Set("c", "");
  Wait("p", {{"c", 5}});
  Wait("q", {{"c", 60}});
  waits_.Cancel("p");
  waits_.Cancel("p");
  waits_.Cancel("never seen");
  EXPECT_THAT(ends_, ElementsAre(Ended("p", End::kCancelled)));
  loop_.Advance(seconds(10));
  EXPECT_EQ(ends_.size(), 1u);
  Set("c", kReady);
  EXPECT_THAT(ends_, ElementsAre(Ended("p", End::kCancelled), Ended("q", End::kReady)));
}

TEST_F(ConditionWaitsTest, TheAnswerNeverComesBeforeTheCallReturns) {
  Set("c", kReady);
  bool done = false;
  waits_.Wait("p", {{"ns/c", "c", ConditionWaits::kNoDeadline}},
              [&](ConditionWaits::Outcome) { done = true; });
  EXPECT_FALSE(done);
  loop_.RunUntilIdle();
  EXPECT_TRUE(done);
}

TEST_F(ConditionWaitsTest, EveryPendingConditionOfEveryDeviceIsListed) {
  Set("c", "xB");
  std::vector<std::string> pending;
  for (const PendingCondition& each : PendingConditions(*claims_.Find("ns/c"))) {
    pending.push_back(StrCat(each.device.device, each.condition));
  }
  EXPECT_THAT(pending, ElementsAre("xA", "yA", "yB"));
  const BindingState state = EvaluateBinding(*claims_.Find("ns/c"));
  EXPECT_EQ(state.kind, BindingState::Kind::kWaiting);
  EXPECT_EQ(StrCat(state.device.device, state.condition), "xA") << "the first one";
  Set("c", "xA xB yA yG");
  EXPECT_EQ(EvaluateBinding(*claims_.Find("ns/c")).kind, BindingState::Kind::kFailed)
      << "a failure of the second device counts although the first is ready";
  Set("c", "yG");
  EXPECT_EQ(EvaluateBinding(*claims_.Find("ns/c")).kind, BindingState::Kind::kFailed)
      << "and although the first is still waiting";
  Set("c", "", {.is_allocated = false});
  EXPECT_EQ(EvaluateBinding(*claims_.Find("ns/c")).kind, BindingState::Kind::kNone);
  EXPECT_THAT(PendingConditions(*claims_.Find("ns/c")), IsEmpty());
}

}  // namespace
}  // namespace drakkar::scheduler
