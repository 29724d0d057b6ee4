#include "scheduler/plugins/dynamic_resources/wait_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/meta/time.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "device/allocated_state.h"

namespace drakkar::scheduler {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

// A claim with one device that has the binding conditions A and B and the failure condition F.
class WaitPolicyTest : public ::testing::Test {
 protected:
  static constexpr Duration kTimeout = seconds(60);

  WaitPolicy Policy(bool is_enabled = true) {
    return WaitPolicy(
        {.clock = loop_.clock(), .claims = claims_, .is_enabled = is_enabled, .timeout = kTimeout});
  }

  static std::string Condition(const char* type) {
    return StrCat(R"({"type":")", type, R"(","status":"True"})");
  }
  // `conditions` are those that are True.
  void SetClaim(const std::string& name, std::initializer_list<const char*> conditions,
                std::string timestamp = {}, bool is_deleted = false) {
    std::vector<std::string> list;
    for (const char* type : conditions) list.push_back(Condition(type));
    Observe(
        name, is_deleted,
        StrCat(R"({"allocation":{)",
               timestamp.empty() ? "" : StrCat(R"("allocationTimestamp":")", timestamp, R"(",)"),
               R"("devices":{"results":[{"request":"r","driver":"d","pool":"p","device":"x",)",
               R"("bindingConditions":["A","B"],"bindingFailureConditions":["F"]}]}},)",
               R"("devices":[{"driver":"d","pool":"p","device":"x","conditions":[)",
               Join(list, ","), "]}]}"));
  }
  void Observe(const std::string& name, bool is_deleted, const std::string& status) {
    auto tree =
        api::ParseJson(StrCat(R"({"metadata":{"namespace":"ns","name":")", name, R"(","uid":"u-)",
                              name, R"(","resourceVersion":")", ++version_, "\"",
                              is_deleted ? R"(,"deletionTimestamp":"2025-01-01T00:00:00Z")" : "",
                              R"(},"spec":{"devices":{}},"status":)", status, "}"));
    ASSERT_TRUE(tree.ok()) << tree.error().message;
    claims_.Observe(std::make_shared<const api::Object>(*tree));
  }
  const CachedClaim& Claim(const std::string& name) { return *claims_.Find("ns/" + name); }
  static std::vector<ClaimItem> Items(std::initializer_list<const char*> names) {
    std::vector<ClaimItem> items;
    for (const char* name : names) {
      items.push_back({.key = StrCat("ns/", name), .uid = StrCat("u-", name)});
    }
    return items;
  }

  SeededLoop loop_;
  device::AllocatedState allocated_;
  ClaimCache claims_{allocated_};
  int version_ = 0;
};

TEST_F(WaitPolicyTest, AClaimIsUsableUntilAFailureConditionIsTrue) {
  SetClaim("c", {});
  EXPECT_TRUE(Policy().IsUsable(Claim("c")));
  SetClaim("c", {"A", "B"});
  EXPECT_TRUE(Policy().IsUsable(Claim("c")));
  SetClaim("c", {"A", "B", "F"});
  EXPECT_FALSE(Policy().IsUsable(Claim("c")));
  EXPECT_TRUE(Policy(/*is_enabled=*/false).IsUsable(Claim("c")));
}

TEST_F(WaitPolicyTest, AClaimIsUsableUntilItsDeadlineUnlessItIsReady) {
  SetClaim("c", {"A"});
  claims_.NoteWait("ns/c", loop_.clock().Monotonic());
  loop_.Advance(kTimeout - seconds(1));
  EXPECT_TRUE(Policy().IsUsable(Claim("c")));
  loop_.Advance(seconds(1));
  EXPECT_FALSE(Policy().IsUsable(Claim("c")));
  EXPECT_TRUE(Policy(/*is_enabled=*/false).IsUsable(Claim("c")));
  SetClaim("c", {"A", "B"});
  EXPECT_TRUE(Policy().IsUsable(Claim("c")));
}

TEST_F(WaitPolicyTest, TheDeadlineCountsFromTheEndOfTheTimestampsSecond) {
  SetClaim("c", {}, api::FormatTime(loop_.clock().Now()));
  const auto items = Items({"c"});
  loop_.Advance(seconds(11));
  const WaitPolicy::Plan plan = Policy().MakePlan(items);
  ASSERT_EQ(plan.claims.size(), 1u);
  const Duration left = plan.claims[0].deadline - loop_.clock().Monotonic();
  EXPECT_GE(left, kTimeout - seconds(11));
  EXPECT_LE(left, kTimeout - seconds(10));
}

TEST_F(WaitPolicyTest, ATimestampFromTheFutureIsNoReasonToWaitLonger) {
  SetClaim("c", {}, api::FormatTime(loop_.clock().Now() + std::chrono::hours(1)));
  const WaitPolicy::Plan plan = Policy().MakePlan(Items({"c"}));
  EXPECT_EQ(plan.claims[0].began, loop_.clock().Monotonic());
  EXPECT_EQ(plan.claims[0].deadline, loop_.clock().Monotonic() + kTimeout);
}

TEST_F(WaitPolicyTest, TheObservedWaitTakesPrecedenceOverTheTimestamp) {
  const MonotonicTime began = loop_.clock().Monotonic();
  SetClaim("c", {}, api::FormatTime(loop_.clock().Now() - seconds(30)));
  claims_.NoteWait("ns/c", began);
  loop_.Advance(seconds(5));
  EXPECT_EQ(Policy().MakePlan(Items({"c"})).claims[0].deadline, began + kTimeout);
}

TEST_F(WaitPolicyTest, APlanNamesEveryClaimAndWhetherAllAreReady) {
  SetClaim("ready", {"A", "B"});
  SetClaim("waiting", {"B"});
  Observe("plain", false,
          R"({"allocation":{"devices":{"results":[{"driver":"d","pool":"p","device":"y"}]}}})");
  const WaitPolicy::Plan plain = Policy().MakePlan(Items({"plain"}));
  EXPECT_FALSE(plain.has_conditions);
  ASSERT_EQ(plain.claims.size(), 1u);
  EXPECT_EQ(plain.claims[0].deadline, ConditionWaits::kNoDeadline);
  const WaitPolicy::Plan ready = Policy().MakePlan(Items({"plain", "ready"}));
  EXPECT_TRUE(ready.has_conditions);
  EXPECT_TRUE(ready.is_ready);
  const WaitPolicy::Plan waiting = Policy().MakePlan(Items({"ready", "waiting", "plain"}));
  EXPECT_TRUE(waiting.has_conditions);
  EXPECT_FALSE(waiting.is_ready);
  EXPECT_EQ(waiting.claims.size(), 3u);
  EXPECT_TRUE(waiting.missing_claim.empty());
}

TEST_F(WaitPolicyTest, AnUnallocatedClaimIsNotReadyAndDueAtOnce) {
  Observe("c", false, "{}");
  const WaitPolicy::Plan plan = Policy().MakePlan(Items({"c"}));
  EXPECT_TRUE(plan.has_conditions);
  EXPECT_FALSE(plan.is_ready);
  EXPECT_EQ(plan.claims[0].deadline, MonotonicTime{});
  EXPECT_FALSE(plan.claims[0].began);
}

TEST_F(WaitPolicyTest, AMissingOrReplacedClaimVoidsThePlan) {
  SetClaim("c", {});
  EXPECT_EQ(Policy().MakePlan(Items({"c", "absent"})).missing_claim, "ns/absent");
  std::vector<ClaimItem> replaced = Items({"c"});
  replaced[0].uid = "another";
  EXPECT_EQ(Policy().MakePlan(replaced).missing_claim, "ns/c");
  EXPECT_TRUE(Policy(/*is_enabled=*/false).MakePlan(replaced).missing_claim.empty());
}

TEST_F(WaitPolicyTest, AClaimIsGoneIfItIsDeletedReplacedOrBeingDeleted) {
  SetClaim("c", {});
  EXPECT_FALSE(Policy().IsGone(Items({"c"})));
  EXPECT_TRUE(Policy().IsGone(Items({"c", "absent"})));
  std::vector<ClaimItem> replaced = Items({"c"});
  replaced[0].uid = "another";
  EXPECT_TRUE(Policy().IsGone(replaced));
  SetClaim("c", {}, {}, /*is_deleted=*/true);
  EXPECT_TRUE(Policy().IsGone(Items({"c"})));
}

TEST_F(WaitPolicyTest, ConditionsAreFoundInChosenAndInAllocatedDevices) {
  SetClaim("c", {});
  Observe("unallocated", false, "{}");
  EXPECT_TRUE(Policy().HasConditions(Items({"unallocated", "c"})));
  EXPECT_FALSE(Policy(/*is_enabled=*/false).HasConditions(Items({"c"})));
  std::vector<ClaimItem> items = Items({"unallocated"});
  EXPECT_FALSE(Policy().HasConditions(items));
  device::AllocationResult chosen;
  chosen.results.emplace_back().binding_failure_conditions = {"F"};
  items[0].chosen = std::make_shared<const device::AllocationResult>(chosen);
  EXPECT_TRUE(Policy().HasConditions(items));
}

TEST_F(WaitPolicyTest, TheEventNamesFourConditionsAndCountsTheRest) {
  SetClaim("one", {"A"});
  EXPECT_EQ(Policy().Describe(Items({"one"}), "n1"),
            "waiting for binding conditions for device on node n1: claim=one, device=d/p/x, "
            "condition=B");
  SetClaim("two", {});
  SetClaim("three", {});
  const std::string text = Policy().Describe(Items({"one", "two", "three"}), "n1");
  EXPECT_THAT(text, HasSubstr("claim=three, device=d/p/x, condition=A"));
  EXPECT_THAT(text, ::testing::EndsWith("; and 1 more"));
}

}  // namespace
}  // namespace drakkar::scheduler
