#include "scheduler/plugins/dynamic_resources/retry_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"

namespace drakkar::scheduler {
namespace {

using Prospects = RetryPolicy::Prospects;
using When = Retry::When;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

device::DeviceId Device(int number) {
  return {"d.example.com", "pool", StrCat("dev-", number)};
}

class RetryPolicyTest : public ::testing::Test {
 protected:
  RetryPolicyTest() {
    for (const char* name : {"n1", "n2", "n3"}) {
      auto tree = api::ParseJson(StrCat(R"({"metadata":{"name":")", name, R"("}})"));
      nodes_.SetNode(std::make_shared<const api::Object>(*tree));
    }
  }

  std::vector<std::string> Failed(const std::string& pod = "p") {
    std::vector<std::string> names;
    for (const device::DeviceId* id : policy_.FailedDevices(pod)) names.push_back(id->device);
    return names;
  }
  std::vector<std::string> Names(const NodeSet& set) {
    std::vector<std::string> names;
    set.ForEach([&](NodeIndex node) { names.push_back(nodes_.name(node)); });
    return names;
  }
  RetryPolicy::Decision Decide(Prospects now, bool is_news = false, bool is_node_lost = false,
                               Prospects with_failed = {}) {
    return policy_.Decide(
        {.pod_uid = "p", .node_name = "n1", .is_node_lost = is_node_lost, .is_news = is_news}, now,
        [&] {
          ++searches_;
          return with_failed;
        });
  }

  NodeTable nodes_;
  RetryPolicy policy_;
  int searches_ = 0;
};

TEST_F(RetryPolicyTest, ADeviceIsNewsOnlyTheFirstTime) {
  EXPECT_TRUE(policy_.NoteDevice("p", Device(0)));
  EXPECT_FALSE(policy_.NoteDevice("p", Device(0)));
  EXPECT_TRUE(policy_.NoteDevice("p", Device(1)));
  EXPECT_TRUE(policy_.NoteDevice("q", Device(0)));
}

TEST_F(RetryPolicyTest, ARoundAvoidsOnlyDevicesThatFailedInIt) {
  policy_.NoteDevice("p", Device(0));
  policy_.NoteDevice("p", Device(1));
  EXPECT_THAT(Failed(), ElementsAre("dev-0", "dev-1"));
  policy_.BeginRound("p");
  EXPECT_THAT(Failed(), IsEmpty());
  policy_.NoteDevice("p", Device(0));
  EXPECT_THAT(Failed(), ElementsAre("dev-0"));
  EXPECT_THAT(Failed("q"), IsEmpty());
}

TEST_F(RetryPolicyTest, AForgottenPodHasNoFailures) {
  policy_.NoteDevice("p", Device(0));
  policy_.NoteNode("p", "n1");
  EXPECT_EQ(policy_.size(), 1u);
  policy_.Forget("p");
  EXPECT_EQ(policy_.size(), 0u);
  EXPECT_THAT(Failed(), IsEmpty());
  EXPECT_THAT(Names(policy_.Untried("p", nodes_, nodes_.known())), ElementsAre("n1", "n2", "n3"));
}

TEST_F(RetryPolicyTest, BeyondTheBoundTheOldestFailureIsForgottenAndNothingIsNews) {
  const auto many = static_cast<int>(RetryPolicy::kMaxFailedDevices);
  for (int i = 0; i < many; ++i) EXPECT_TRUE(policy_.NoteDevice("p", Device(i)));
  EXPECT_FALSE(policy_.NoteDevice("p", Device(many)));
  EXPECT_EQ(Failed().size(), RetryPolicy::kMaxFailedDevices);
  EXPECT_THAT(Failed(), ::testing::Not(::testing::Contains("dev-0")));
  EXPECT_THAT(Failed(), ::testing::Contains(StrCat("dev-", many)));
}

TEST_F(RetryPolicyTest, BeyondTheBoundTheNodeThatFailedLongestAgoIsForgotten) {
  policy_.NoteNode("p", "n1");
  policy_.NoteNode("p", "n2");
  policy_.NoteNode("p", "n1");
  for (std::size_t i = 0; i + 1 < RetryPolicy::kMaxFailedNodes; ++i) {
    policy_.NoteNode("p", StrCat("other-", i));
  }
  EXPECT_THAT(Names(policy_.Untried("p", nodes_, nodes_.known())), ElementsAre("n2", "n3"));
}

TEST_F(RetryPolicyTest, UntriedNodesArePreferredThenTheOneThatFailedLongestAgo) {
  const auto preferred = [&] {
    NodeSet nodes = nodes_.known();
    policy_.PreferUntried("p", nodes_, nodes);
    return Names(nodes);
  };
  EXPECT_THAT(preferred(), ElementsAre("n1", "n2", "n3"));
  policy_.NoteNode("p", "n2");
  EXPECT_THAT(preferred(), ElementsAre("n1", "n3"));
  policy_.NoteNode("p", "n1");
  policy_.NoteNode("p", "n3");
  EXPECT_THAT(preferred(), ElementsAre("n2"));
  policy_.NoteNode("p", "n2");
  EXPECT_THAT(preferred(), ElementsAre("n1"));
}

TEST_F(RetryPolicyTest, PreferUntriedConsidersOnlyTheGivenNodes) {
  policy_.NoteNode("p", "n2");
  policy_.NoteNode("p", "n3");
  policy_.NoteNode("p", "gone");
  NodeSet nodes = nodes_.known();
  nodes.Remove(nodes_.Find("n1"));
  policy_.PreferUntried("p", nodes_, nodes);
  EXPECT_THAT(Names(nodes), ElementsAre("n2"));
}

TEST_F(RetryPolicyTest, TheNodeThatFailedLongestAgoMustBeOneOfTheGivenNodes) {
  policy_.NoteNode("p", "gone");
  policy_.NoteNode("p", "n1");
  policy_.NoteNode("p", "n3");
  policy_.NoteNode("p", "n2");
  NodeSet nodes = nodes_.known();
  nodes.Remove(nodes_.Find("n1"));
  policy_.PreferUntried("p", nodes_, nodes);
  EXPECT_THAT(Names(nodes), ElementsAre("n3"));
}

TEST_F(RetryPolicyTest, IfNothingFitsThePodIsRetriedLaterAndKeepsItsClaims) {
  policy_.NoteDevice("p", Device(0));
  const auto decision = Decide({}, /*is_news=*/true);
  EXPECT_EQ(decision.when, When::kLater);
  EXPECT_FALSE(decision.gives_up_claims);
  EXPECT_EQ(searches_, 0);
}

TEST_F(RetryPolicyTest, AnotherDeviceIsTriedSoonIfTheFailureIsNews) {
  EXPECT_EQ(Decide({.fits = true}, /*is_news=*/true).when, When::kSoon);
  EXPECT_EQ(Decide({.fits = true}, /*is_news=*/false).when, When::kLater);
}

TEST_F(RetryPolicyTest, AReadyDeviceIsTriedAtOnceButNotTwiceInARow) {
  policy_.NoteDevice("p", Device(0));
  const Prospects ready{.fits = true, .fits_ready = true};
  EXPECT_EQ(Decide(ready, /*is_news=*/true).when, When::kAtOnce);
  EXPECT_EQ(Decide(ready, /*is_news=*/true).when, When::kSoon);
  EXPECT_EQ(Decide(ready, /*is_news=*/true).when, When::kAtOnce);
}

TEST_F(RetryPolicyTest, APodWhoseNodeWasLostIsRetriedAtOnce) {
  EXPECT_EQ(Decide({.fits = true}, true, /*is_node_lost=*/true).when, When::kAtOnce);
  const auto decision = Decide({.fits_alone = true}, true, /*is_node_lost=*/true);
  EXPECT_EQ(decision.when, When::kAtOnce);
  EXPECT_TRUE(decision.gives_up_claims);
}

TEST_F(RetryPolicyTest, ClaimsThatTieThePodToAUselessNodeAreGivenUp) {
  const auto decision = Decide({.fits_alone = true}, /*is_news=*/true);
  EXPECT_EQ(decision.when, When::kSoon);
  EXPECT_TRUE(decision.gives_up_claims);
  EXPECT_EQ(Decide({.fits_alone = true}, /*is_news=*/false).when, When::kLater);
}

TEST_F(RetryPolicyTest, ANodeIsLeftAfterRepeatedFailuresIfAnotherIsUntried) {
  const Prospects tied{.fits = true, .fits_alone = true, .fits_alone_untried = true};
  policy_.NoteNode("p", "n1");
  EXPECT_FALSE(Decide(tied, true).gives_up_claims);
  policy_.NoteNode("p", "n1");
  EXPECT_TRUE(Decide(tied, true).gives_up_claims);
  // A ready device here is better than another node.
  Prospects ready = tied;
  ready.fits_ready = true;
  EXPECT_FALSE(Decide(ready, true).gives_up_claims);
  // So is this node once all others have been tried.
  Prospects tried = tied;
  tried.fits_alone_untried = false;
  EXPECT_FALSE(Decide(tried, true).gives_up_claims);
}

TEST_F(RetryPolicyTest, FailedDevicesCountAgainForANodeThatHadNone) {
  const Prospects elsewhere{.fits_alone_untried = true};
  policy_.NoteNode("p", "n1");
  EXPECT_FALSE(Decide({}, true, false, elsewhere).gives_up_claims);
  EXPECT_EQ(searches_, 0) << "one failure is no reason to leave";
  policy_.NoteNode("p", "n1");
  EXPECT_TRUE(Decide({}, true, false, elsewhere).gives_up_claims);
  EXPECT_EQ(searches_, 1);
  EXPECT_FALSE(Decide({}, true, false, {.fits = true}).gives_up_claims);
}

}  // namespace
}  // namespace drakkar::scheduler
