// KEP-5007 through the API: a pod waits for its devices' conditions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/tree/draft.h"
#include "base/text/text.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/cluster.h"

namespace drakkar::scheduler {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BindingConditions : public ::testing::Test {
 protected:
  // Creates a node with `count` devices that must be attached, a claim, and a pod waiting for it.
  void StartWaiting(TestCluster& cluster, int count = 1) {
    cluster.CreateNode("n1");
    cluster.CreateSlice("n1", count, kConditions);
    cluster.CreateClass();
    cluster.CreateClaim("c");
    cluster.StartScheduler();
    cluster.CreatePodWithClaims("p", {"c"});
    cluster.Settle();
    ASSERT_EQ(cluster.scheduler().counts().waiting_for_conditions, 1u);
    ASSERT_EQ(cluster.NodeOf("p"), "");
  }
};

TEST_F(BindingConditions, TheAllocationIsWrittenAndThePodWaitsVisibly) {
  TestCluster cluster;
  StartWaiting(cluster);
  const api::Value allocation = cluster.Find("ResourceClaim", "c")->root()["status"]["allocation"];
  EXPECT_EQ(allocation["allocationTimestamp"].str(), "2027-01-15T08:00:00Z");
  const api::Value result = allocation["devices"]["results"].at(0);
  EXPECT_EQ(result["bindingConditions"].at(0).str(), "d.example.com/attached");
  EXPECT_EQ(result["bindingFailureConditions"].at(0).str(), "d.example.com/failed");
  EXPECT_THAT(cluster.ReservedFor("c"), ElementsAre("p"));
  EXPECT_THAT(cluster.Events("p", "BindingConditionsPending"),
              ElementsAre("waiting for binding conditions for device on node n1: claim=c, "
                          "device=d.example.com/n1/dev-0, condition=d.example.com/attached"));
  EXPECT_EQ(cluster.Find("Pod", "p")->root()["status"]["nominatedNodeName"].str(), "n1")
      << "autoscalers see where it goes";
}

TEST_F(BindingConditions, ThePodIsBoundAsSoonAsTheLastConditionIsTrue) {
  TestCluster cluster;
  StartWaiting(cluster);
  cluster.loop().Advance(minutes(3));
  EXPECT_EQ(cluster.NodeOf("p"), "");
  const MonotonicTime before = cluster.loop().clock().Monotonic();
  cluster.SetDeviceCondition("c", "d.example.com/attached", "True");
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
  EXPECT_LE(cluster.loop().clock().Monotonic() - before, std::chrono::milliseconds(5));
  EXPECT_THAT(cluster.metrics().Text(),
              HasSubstr("scheduler_dra_bindingconditions_allocations_total{status=\"success\"} 1"));
}

TEST_F(BindingConditions, AWaitingPodDoesNotBlockOthers) {
  TestCluster cluster;
  StartWaiting(cluster);
  cluster.CreatePod("other");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("other"), "n1");
}

TEST_F(BindingConditions, AFailureFreesTheDeviceAndTakesAnother) {
  TestCluster cluster;
  StartWaiting(cluster, 2);
  EXPECT_THAT(cluster.DevicesOf("c"), ElementsAre("d.example.com/n1/dev-0"));
  cluster.SetDeviceCondition("c", "d.example.com/failed", "True");
  cluster.LetPauseEnd();
  EXPECT_THAT(cluster.DevicesOf("c"), ElementsAre("d.example.com/n1/dev-1"))
      << "the one that failed is avoided";
  EXPECT_THAT(cluster.ReservedFor("c"), ElementsAre("p"));
  EXPECT_THAT(
      cluster.Events("p", "FailedScheduling"),
      ElementsAre("device binding failed: claim=c, device=d.example.com/n1/dev-0, "
                  "condition=d.example.com/failed, reason=Test, message=\"said the test\""));
  cluster.SetDeviceCondition("c", "d.example.com/attached", "True");
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
  EXPECT_THAT(cluster.metrics().Text(),
              HasSubstr("scheduler_dra_bindingconditions_allocations_total{status=\"failure\"} 1"));
}

TEST_F(BindingConditions, ADeviceThatKeepsFailingIsRetriedWithBackoff) {
  TestCluster cluster;
  StartWaiting(cluster, 1);
  cluster.SetDeviceCondition("c", "d.example.com/failed", "True");
  cluster.Settle();
  EXPECT_THAT(cluster.DevicesOf("c"), IsEmpty()) << "cleared in one step, not taken again at once";
  EXPECT_THAT(cluster.ReservedFor("c"), IsEmpty());
  EXPECT_EQ(cluster.scheduler().counts().backoff, 1u);
  cluster.loop().Advance(seconds(3));
  EXPECT_THAT(cluster.DevicesOf("c"), ElementsAre("d.example.com/n1/dev-0"))
      << "the only device there is";
  EXPECT_EQ(cluster.scheduler().counts().waiting_for_conditions, 1u);
}

TEST_F(BindingConditions, FailureTakesPrecedenceOverSuccess) {
  TestCluster cluster;
  StartWaiting(cluster);
  cluster.Update("ResourceClaim", "c", "status", [](api::Draft& claim) {
    api::Draft conditions = api::Draft::Array();
    for (const char* type : {"d.example.com/attached", "d.example.com/failed"}) {
      conditions.Append({{"type", type},
                         {"status", "True"},
                         {"reason", "R"},
                         {"message", "m"},
                         {"lastTransitionTime", "2027-01-01T00:00:00Z"}});
    }
    api::Draft device{{"driver", "d.example.com"}, {"pool", "n1"}, {"device", "dev-0"}};
    device["conditions"] = std::move(conditions);
    claim["status"]["devices"].Append(std::move(device));
  });
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("p"), "");
  EXPECT_THAT(cluster.DevicesOf("c"), IsEmpty());
}

TEST_F(BindingConditions, TheTimeoutCountsFromTheAllocationAndClearsIt) {
  TestCluster cluster;
  StartWaiting(cluster);
  cluster.loop().Advance(minutes(9));
  EXPECT_THAT(cluster.DevicesOf("c"), ::testing::SizeIs(1));
  cluster.loop().Advance(seconds(60) + std::chrono::milliseconds(500));
  EXPECT_THAT(cluster.DevicesOf("c"), IsEmpty());
  EXPECT_THAT(cluster.ReservedFor("c"), IsEmpty());
  EXPECT_EQ(cluster.scheduler().counts().backoff, 1u) << "back in the queue";
  EXPECT_THAT(cluster.metrics().Text(),
              HasSubstr("scheduler_dra_bindingconditions_allocations_total{status=\"timeout\"} 1"));
  EXPECT_THAT(cluster.Events("p", "FailedScheduling"),
              ElementsAre("device binding timeout: claim=c, device=d.example.com/n1/dev-0, "
                          "condition=d.example.com/attached"));
}

TEST_F(BindingConditions, ARestartedSchedulerKeepsWaitingOnTheSameNode) {
  TestCluster cluster;
  StartWaiting(cluster);
  cluster.CreateNode("n0");
  cluster.loop().Advance(minutes(4));
  cluster.KillScheduler();
  cluster.loop().Advance(minutes(1));
  cluster.StartScheduler();
  EXPECT_EQ(cluster.scheduler().counts().waiting_for_conditions, 1u);
  cluster.SetDeviceCondition("c", "d.example.com/attached", "True");
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
}

TEST_F(BindingConditions, ARestartDoesNotExtendTheTimeout) {
  TestCluster cluster;
  StartWaiting(cluster);
  cluster.loop().Advance(minutes(6));
  cluster.KillScheduler();
  cluster.StartScheduler();
  cluster.loop().Advance(minutes(4) + seconds(1));
  EXPECT_THAT(cluster.metrics().Text(),
              HasSubstr("scheduler_dra_bindingconditions_allocations_total{status=\"timeout\"} 1"));
}

TEST_F(BindingConditions, AFailureWhileNoSchedulerRanIsDetectedAndCleared) {
  TestCluster cluster;
  StartWaiting(cluster, 2);
  cluster.KillScheduler();
  cluster.SetDeviceCondition("c", "d.example.com/failed", "True");
  cluster.StartScheduler();
  cluster.loop().Advance(seconds(2));
  EXPECT_EQ(cluster.scheduler().counts().waiting_for_conditions, 1u) << "allocated again";
  EXPECT_THAT(cluster.Events("p", "FailedScheduling"),
              ::testing::Contains(HasSubstr("device binding failed: claim=c, "
                                            "device=d.example.com/n1/dev-0")));
}

TEST_F(BindingConditions, AllWaitersOfOneClaimLoseItTogether) {
  TestCluster cluster;
  StartWaiting(cluster, 1);
  cluster.CreatePodWithClaims("q", {"c"});
  cluster.Settle();
  EXPECT_THAT(cluster.ReservedFor("c"), ElementsAre("p", "q"));
  cluster.SetDeviceCondition("c", "d.example.com/failed", "True");
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("p"), "");
  EXPECT_EQ(cluster.NodeOf("q"), "");
  cluster.loop().Advance(seconds(5));
  cluster.SetDeviceCondition("c", "d.example.com/attached", "True");
  cluster.loop().Advance(seconds(5));
  EXPECT_EQ(cluster.NodeOf("p"), "n1");
  EXPECT_EQ(cluster.NodeOf("q"), "n1");
}

TEST_F(BindingConditions, ABoundPodKeepsItsClaimWhenAnotherFailsToJoin) {
  TestCluster cluster;
  StartWaiting(cluster);
  cluster.SetDeviceCondition("c", "d.example.com/attached", "True");
  ASSERT_EQ(cluster.NodeOf("p"), "n1");
  cluster.SetDeviceCondition("c", "d.example.com/failed", "True");
  cluster.CreatePodWithClaims("q", {"c"});
  cluster.loop().Advance(seconds(5));
  EXPECT_EQ(cluster.NodeOf("q"), "");
  EXPECT_THAT(cluster.DevicesOf("c"), ::testing::SizeIs(1));
  EXPECT_THAT(cluster.ReservedFor("c"), ElementsAre("p"));
}

TEST_F(BindingConditions, DeletingAWaitingPodEndsTheWait) {
  TestCluster cluster;
  StartWaiting(cluster);
  cluster.Delete("Pod", "p");
  cluster.Settle();
  EXPECT_EQ(cluster.scheduler().counts().waiting_for_conditions, 0u);
  EXPECT_EQ(cluster.scheduler().counts().binding, 0u);
}

TEST_F(BindingConditions, ADeviceThatNeedsNoWaitIsPreferredOnAnyNode) {
  TestCluster cluster;
  cluster.CreateNode("a-waits");
  cluster.CreateSlice("a-waits", 4, kConditions);
  cluster.CreateNode("b-ready");
  cluster.CreateSlice("b-ready", 2);
  cluster.CreateClass();
  for (int i = 0; i < 3; ++i) cluster.CreateClaim(StrCat("c", i));
  cluster.StartScheduler();
  for (int i = 0; i < 3; ++i) cluster.CreatePodWithClaims(StrCat("p", i), {StrCat("c", i)});
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("p0"), "b-ready");
  EXPECT_EQ(cluster.NodeOf("p1"), "b-ready");
  EXPECT_EQ(cluster.NodeOf("p2"), "");
  EXPECT_EQ(cluster.scheduler().counts().waiting_for_conditions, 1u);
}

TEST_F(BindingConditions, WithTheGateOffSuchDevicesAreNotChosen) {
  TestCluster cluster(FeatureGates().With(Gate::kDRADeviceBindingConditions, false));
  cluster.CreateNode("n1");
  cluster.CreateSlice("n1", 1, kConditions);
  cluster.CreateClass();
  cluster.CreateClaim("c");
  cluster.StartScheduler();
  cluster.CreatePodWithClaims("p", {"c"});
  cluster.Settle();
  EXPECT_EQ(cluster.NodeOf("p"), "");
  EXPECT_THAT(cluster.ConditionMessage("p"), HasSubstr("0/1 nodes are available: 1 "));
}

}  // namespace
}  // namespace drakkar::scheduler
